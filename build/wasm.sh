#!/usr/bin/env bash
# Makes build/out/chat-completions.wasm, the same bytes every time for the same
# sources, tools and VERSION.
#
#   VERSION   what the module logs at its start (default: dev)
#   OUT       where the module goes (default: build/out/chat-completions.wasm)
#   PACKAGE   what is built (default: ./filter); the benchmarks have modules of their own
#   TAGS      build tags: "trap" for a module that dies on demand, for tests (filter/abi_trap.go)
#   OVERLAY   a file for `go build -overlay`, for experiments
#   PLAIN     1 leaves out the treatment behind the compiler: what the module is compared with
set -euo pipefail
cd "$(dirname "$0")/.."

version=${VERSION:-dev}
if [[ ! $version =~ ^[0-9A-Za-z.+_-]{1,64}$ ]]; then
	echo "VERSION must be of letters, digits and . + _ -" >&2
	exit 1
fi

mkdir -p build/out
out=${OUT:-build/out/chat-completions.wasm}
work=$(mktemp -d build/out/wasm.XXXXXX)
trap 'rm -rf "$work"' EXIT

# The tools that link WebAssembly modules, at the version of the lock file. They
# are installed aside and then moved, so that a run that breaks off, or another
# one at the same time, leaves no half of them behind.
tools=build/node_modules
if ! cmp -s build/package-lock.json "$tools/.installed-lock"; then
	mkdir "$work/npm"
	cp build/package.json build/package-lock.json "$work/npm"
	npm ci --prefix "$work/npm" --no-audit --no-fund --loglevel=error
	cp build/package-lock.json "$work/npm/node_modules/.installed-lock"
	rm -rf "$tools"
	mv "$work/npm/node_modules" "$tools" || cmp build/package-lock.json "$tools/.installed-lock"
fi

# No build id and no VCS stamp: they change while the code does not.
GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0 GOFLAGS= go build \
	-buildmode=c-shared -trimpath -buildvcs=false ${TAGS:+-tags "$TAGS"} ${OVERLAY:+-overlay "$OVERLAY"} \
	-ldflags="-s -w -buildid= -X main.version=$version" -o "$work/go.wasm" "${PACKAGE:-./filter}"

# Go lays a function out so that each forward jump goes through a table; this makes
# such jumps direct (build/directjump/README.md).
if [[ -z ${PLAIN:-} ]]; then
	go run ./build/directjump/cmd/directjump "$work/go.wasm" "$work/direct.wasm"
else
	mv "$work/go.wasm" "$work/direct.wasm"
fi

features=(--enable-bulk-memory --enable-bulk-memory-opt --enable-sign-ext --enable-nontrapping-float-to-int --enable-mutable-globals)
"$tools/.bin/wasm-as" "${features[@]}" build/wasistub.wat -o "$work/stub.wasm"
"$tools/.bin/wasm-merge" "${features[@]}" "$work/direct.wasm" go "$work/stub.wasm" wasi_snapshot_preview1 -o "$work/merged.wasm"
if [[ -z ${PLAIN:-} ]]; then
	"$tools/.bin/wasm-opt" "${features[@]}" -O1 "$work/merged.wasm" -o "$work/small.wasm"
else
	mv "$work/merged.wasm" "$work/small.wasm"
fi
go run ./build/finish "$work/small.wasm" "$work/stub.wasm" "$work/out.wasm"
mv "$work/out.wasm" "$out"
