package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tetratelabs/wazero"

	"ezat.io/chat-completions/harness/internal/abi"
)

// Host runs one module, as one Envoy process with one plugin would.
type Host struct {
	config   Config
	runtime  wazero.Runtime
	cache    wazero.CompilationCache
	compiled wazero.CompiledModule
	workers  []*worker
	allowed  map[string]bool // nil: everything
	metrics  registry
	shared   shared

	logMu sync.Mutex
	log   []LogLine // a ring of at most logLinesMax
	logAt int

	turn    counter // round robin over the workers
	streams counter // connection ids

	busyMu   sync.Mutex
	busy     int // callouts on their way through a Transport
	progress *sync.Cond
	closed   bool
}

// New compiles and checks the module and starts a VM on each worker. It fails
// when the module asks for something that the host does not have, with every
// such import by module and name, and when the guest does not start or refuses
// its configuration, with what the guest logged.
func New(ctx context.Context, module []byte, config Config) (*Host, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	h := &Host{config: config}
	h.progress = sync.NewCond(&h.busyMu)
	if config.Capabilities != nil {
		h.allowed = map[string]bool{}
		for _, name := range config.Capabilities {
			h.allowed[name] = true
		}
	}
	if err := h.load(ctx, module); err != nil {
		return nil, errors.Join(err, h.Close(ctx))
	}
	return h, nil
}

// load compiles, checks and starts.
func (h *Host) load(ctx context.Context, module []byte) error {
	var err error
	if h.cache, err = openCache(h.config.CacheDir); err != nil {
		return err
	}
	rc := wazero.NewRuntimeConfig().
		WithCompilationCache(h.cache).
		WithMemoryLimitPages(uint32(h.config.MemoryBytesMax / wasmPageBytes)).
		WithCloseOnContextDone(h.config.CallTimeout > 0)
	h.runtime = wazero.NewRuntimeWithConfig(ctx, rc)
	if h.compiled, err = h.runtime.CompileModule(ctx, module); err != nil {
		return fmt.Errorf("harness: compile the module: %w", err)
	}
	if err := abi.Check(h.compiled, h.config.GoWASI); err != nil {
		return fmt.Errorf("harness: the module cannot run on a strict host:\n%w", err)
	}
	if err := abi.Register(ctx, h.runtime); err != nil {
		return fmt.Errorf("harness: %w", err)
	}
	count := h.config.Workers
	if h.config.MainThread {
		count++
	}
	for i := range count {
		w := newWorker(h, i)
		h.workers = append(h.workers, w)
		if err := w.start(); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the guest's plugin contexts and frees all VMs. Streams that are
// still open are dropped.
func (h *Host) Close(ctx context.Context) error {
	for _, w := range h.workers {
		w.stop()
	}
	h.busyMu.Lock()
	h.closed = true
	h.progress.Broadcast()
	h.busyMu.Unlock()
	var errs []error
	if h.runtime != nil {
		errs = append(errs, h.runtime.Close(ctx))
	}
	if h.cache != nil {
		errs = append(errs, h.cache.Close(ctx))
	}
	return errors.Join(errs...)
}

// pick chooses a worker for a new stream.
func (h *Host) pick() *worker { return h.workers[h.turn.next()%uint64(h.config.Workers)] }

// counter counts, safe for concurrent use.
type counter struct {
	mu sync.Mutex
	n  uint64
}

func (c *counter) next() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n - 1
}

// say keeps a log line and hands it on.
func (h *Host) say(worker int, level LogLevel, message string) {
	if len(message) > logLineBytesMax {
		message = message[:logLineBytesMax]
	}
	line := LogLine{Level: level, Message: message, Worker: worker}
	h.logMu.Lock()
	if len(h.log) < logLinesMax {
		h.log = append(h.log, line)
	} else {
		h.log[h.logAt] = line
		h.logAt = (h.logAt + 1) % logLinesMax
	}
	h.logMu.Unlock()
	if h.config.Log != nil {
		h.config.Log(line)
	}
}

// Log returns the last lines that guests have logged, oldest first, at most
// 4,096. Lines of the host about a guest begin with "harness: ".
func (h *Host) Log() []LogLine {
	h.logMu.Lock()
	defer h.logMu.Unlock()
	return slices.Concat(h.log[h.logAt:], h.log[:h.logAt])
}

// cacheVersion is part of the cache's path: wazero cannot tell its own version
// inside a test, and code of another version must not be loaded. A test holds
// it to go.mod.
const cacheVersion = "wazero-v1.12.0"

// cacheBytesMax is where the oldest compiled modules are removed.
const cacheBytesMax = 512 << 20

// openCache opens the cache of compiled modules: compiling a Go module takes
// seconds, loading it from here a tenth of one.
func openCache(dir string) (wazero.CompilationCache, error) {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			dir = "-" // no home: keep them in memory
		} else {
			dir = filepath.Join(user, "ezat-chat-completions")
		}
	}
	if dir == "-" {
		return wazero.NewCompilationCache(), nil
	}
	dir = filepath.Join(dir, cacheVersion)
	if err := pruneCache(dir, cacheBytesMax); err != nil {
		return nil, fmt.Errorf("harness: prune the compilation cache: %w", err)
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, fmt.Errorf("harness: open the compilation cache: %w", err)
	}
	return cache, nil
}

// pruneCache removes the oldest files until the rest is within max bytes. Other
// processes may do the same at the same time.
func pruneCache(dir string, max int64) error {
	type file struct {
		path string
		info os.FileInfo
	}
	var files []file
	var total int64
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err == nil && info.Mode().IsRegular() {
			files = append(files, file{path, info})
			total += info.Size()
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b file) int { return a.info.ModTime().Compare(b.info.ModTime()) })
	for _, f := range files {
		if total <= max {
			break
		}
		if err := os.Remove(f.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		total -= f.info.Size()
	}
	return nil
}
