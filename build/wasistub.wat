;; The seven WASI functions that every Go module imports and the proxy-wasm ABI
;; document does not name, so that a host may refuse them. Linked over the
;; module, they leave only the eight documented ones (build/wasm.sh).
;;
;; There are no files and nothing to wait for: file calls answer EBADF (8), and
;; polling ends at once with no event, which also keeps Go's runtime from dying
;; on hosts that do not have it.
(module
  (func (export "sched_yield") (result i32) (i32.const 0))
  (func (export "poll_oneoff") (param i32 i32 i32 i32) (result i32) (i32.const 0))
  (func (export "fd_close") (param i32) (result i32) (i32.const 8))
  (func (export "fd_fdstat_get") (param i32 i32) (result i32) (i32.const 8))
  (func (export "fd_fdstat_set_flags") (param i32 i32) (result i32) (i32.const 8))
  (func (export "fd_prestat_get") (param i32 i32) (result i32) (i32.const 8))
  (func (export "fd_prestat_dir_name") (param i32 i32 i32) (result i32) (i32.const 8)))
