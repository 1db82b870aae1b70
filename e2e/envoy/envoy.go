package envoy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// startLimit is how long Envoy may take to compile the module and to serve.
// An idle machine needs two or three seconds for it.
const startLimit = 60 * time.Second

// stopLimit is how long Envoy may take to end when it is asked to.
const stopLimit = 10 * time.Second

// Options say how Envoy is started. Only Upstreams has no default.
type Options struct {
	// File is the shipped configuration, from the top of the repository; File
	// unless set.
	File string
	// Version of Envoy; Current unless set.
	Version string
	// Module is the path of the wasm module; that of `make wasm` unless set.
	Module string
	// Upstreams are where requests go: http://HOST:PORT, https://HOST[:PORT], or
	// HOST:PORT for plain HTTP.
	Upstreams []string
	// UpstreamCA is the path of a certificate authority in place of the
	// system's, for upstreams with TLS.
	UpstreamCA string
	// ImageCA is the path of a certificate authority in place of the system's,
	// for the servers of https images.
	ImageCA string
	// Listen is the address for clients; a free port on loopback unless set.
	Listen string
	// Plugin replaces the filter's configuration: a string as it is,
	// anything else as its JSON; nil keeps the shipped one.
	Plugin any
	// Examples names examples of the file to be switched on.
	Examples []string
	// Concurrency is the number of worker threads; 1 unless set.
	Concurrency int
	// Edits are further changes, in order.
	Edits []Edit
	// Args are added to Envoy's command line.
	Args []string
	// Env is added to Envoy's environment, as "KEY=VALUE".
	Env []string
	// AccessLog also gets the access log, unless it is nil.
	AccessLog io.Writer
	// LogLevel of Envoy's own log; "info" unless set.
	LogLevel string
	// FaultsExpected says that Envoy's log may show faults (see Faults):
	// a test of New then does not fail for them.
	FaultsExpected bool
}

// Envoy is a running Envoy.
type Envoy struct {
	// URL is where clients connect, without a path: http://127.0.0.1:PORT.
	URL string
	// Addr is the same as HOST:PORT.
	Addr string
	// Admin is the administration interface: http://127.0.0.1:PORT.
	Admin string
	// PID is Envoy's process.
	PID int

	dir    string // configuration, logs
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process is gone
	result error         // of the process, once ended is closed
}

// Configuration returns the shipped configuration with the replacements that
// the options ask for, as Start uses it.
func Configuration(o Options) (*Config, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	file := o.File
	if file == "" {
		file = File
	}
	source, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return nil, err
	}
	c, err := ParseConfig(source, o.Examples...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	module := o.Module
	if module == "" {
		module = filepath.Join(root, "build", "out", "chat-completions.wasm")
	}
	if _, err := os.Stat(module); err != nil {
		return nil, fmt.Errorf("the module is missing: run `make wasm`: %w", err)
	}
	listenAddr := o.Listen
	if listenAddr == "" {
		listenAddr = "127.0.0.1:0"
	}
	edits := []Edit{
		listen(listenAddr, "127.0.0.1:0"),
		Set(module, at(Filter, "vm_config", "code", "local", "filename")...),
		upstreams(o.Upstreams, o.UpstreamCA),
		imageAuthorities(o.ImageCA),
	}
	if o.Plugin != nil {
		edits = append(edits, plugin(o.Plugin))
	}
	for _, edit := range append(edits, o.Edits...) {
		if err := edit(c); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return c, nil
}

// Start starts Envoy and waits until it serves. When ctx ends first, or a
// minute has passed, Envoy is stopped and the error has the end of its log.
func Start(ctx context.Context, o Options) (*Envoy, error) {
	c, err := Configuration(o)
	if err != nil {
		return nil, err
	}
	e := &Envoy{ended: make(chan struct{})}
	if e.dir, err = os.MkdirTemp("", "envoy-"); err != nil {
		return nil, err
	}
	if err := e.launch(c, o); err != nil {
		return nil, errors.Join(err, os.RemoveAll(e.dir))
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := e.waitLive(ctx); err != nil {
		err = fmt.Errorf("Envoy does not serve: %w\n%s", err, e.told(40))
		e.end()
		return nil, errors.Join(err, os.RemoveAll(e.dir))
	}
	return e, nil
}

// launch writes the configuration and starts the process.
func (e *Envoy) launch(c *Config, o Options) error {
	version := o.Version
	if version == "" {
		version = Current
	}
	binary, err := Binary(version)
	if err != nil {
		return err
	}
	config, err := c.JSON()
	if err != nil {
		return err
	}
	if err := os.WriteFile(e.path("envoy.json"), config, 0o600); err != nil {
		return err
	}
	level := o.LogLevel
	if level == "" {
		level = "info"
	}
	e.cmd = exec.Command(binary, "-c", e.path("envoy.json"), "--use-dynamic-base-id",
		"--concurrency", strconv.Itoa(max(1, o.Concurrency)), "--log-level", level,
		"--admin-address-path", e.path("admin"), "--file-flush-interval-msec", "50")
	e.cmd.Args = append(e.cmd.Args, o.Args...)
	e.cmd.Env = append(os.Environ(), o.Env...)
	return e.run(o.AccessLog)
}

// run starts the process and watches it. One thread does both and stays until
// the end, see detach.
func (e *Envoy) run(copied io.Writer) error {
	stdout, err := os.Create(e.path("access.log"))
	if err != nil {
		return err
	}
	stderr, err := os.Create(e.path("server.log"))
	if err != nil {
		return errors.Join(err, stdout.Close())
	}
	e.cmd.Stdout, e.cmd.Stderr = stdout, stderr
	if copied != nil {
		e.cmd.Stdout = io.MultiWriter(stdout, copied)
	}
	detach(e.cmd)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := e.cmd.Start()
		started <- err
		if err == nil {
			e.result = e.cmd.Wait()
		}
		e.result = errors.Join(e.result, stdout.Close(), stderr.Close())
		close(e.ended)
	}()
	if err := <-started; err != nil {
		return err
	}
	e.PID = e.cmd.Process.Pid
	return nil
}

// waitLive waits for the administration interface, for its word that the
// server is live, and for the listener.
func (e *Envoy) waitLive(ctx context.Context) error {
	last := errors.New("it has not begun")
	for {
		if last = e.live(ctx); last == nil {
			return nil
		}
		select {
		case <-e.ended:
			return fmt.Errorf("it has ended: %w", e.result)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), last)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (e *Envoy) live(ctx context.Context) error {
	address, err := os.ReadFile(e.path("admin"))
	if err != nil {
		return err
	}
	e.Admin = "http://" + strings.TrimSpace(string(address))
	if _, err := e.admin(ctx, http.MethodGet, "/ready"); err != nil {
		return err
	}
	if e.Addr, err = e.ListenerAddr(ctx, "openai"); err != nil {
		return err
	}
	e.URL = "http://" + e.Addr
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", e.Addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Ended is closed when Envoy's process is gone.
func (e *Envoy) Ended() <-chan struct{} { return e.ended }

// Stop ends Envoy and removes what it has written. The error says that Envoy
// had ended before, by itself.
func (e *Envoy) Stop() error {
	var err error
	select {
	case <-e.ended:
		err = fmt.Errorf("Envoy had ended by itself (%v):\n%s", e.result, e.told(40))
	default:
		err = e.end()
	}
	return errors.Join(err, os.RemoveAll(e.dir))
}

// end asks the process to end, and insists when it does not.
func (e *Envoy) end() error {
	if err := e.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-e.ended:
		return nil
	case <-time.After(stopLimit):
	}
	err := e.cmd.Process.Kill()
	<-e.ended
	return errors.Join(fmt.Errorf("Envoy did not end within %v", stopLimit), err)
}

func (e *Envoy) path(name string) string { return filepath.Join(e.dir, name) }

// Validate lets Envoy load a configuration, the module included, and end.
// It returns what Envoy wrote, and an error when Envoy did not take it.
func Validate(ctx context.Context, version string, c *Config, env ...string) (string, error) {
	binary, err := Binary(version)
	if err != nil {
		return "", err
	}
	config, err := c.JSON()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "envoy-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "envoy.json")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	cmd := exec.CommandContext(ctx, binary, "--mode", "validate", "--use-dynamic-base-id", "-c", path)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(err, os.RemoveAll(dir))
}
