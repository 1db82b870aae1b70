// Command gateway serves the module on the embedded harness, for a first look
// and for development; production runs Envoy. Without -upstream it answers from a
// built-in stand-in for the Anthropic API, so that nothing else is needed.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"ezat.io/chat-completions/e2e/standin"
	"ezat.io/chat-completions/harness"
)

// The limits of the shipped envoy.yaml, as far as the harness has them.
const (
	bufferBytesMax      = 128 << 20
	headerBytesMax      = 60 << 10
	streamIdleTimeout   = 620 * time.Second
	headerTimeout       = 10 * time.Second
	connectionIdle      = 5 * time.Minute
	reloadBackoff       = time.Second
	shutdownTimeout     = 5 * time.Second
	workersMax          = 4
	recordedBytesMax    = bufferBytesMax // of a request that -show prints
	recordedRequestsMax = 1
)

// upstreamCluster is the cluster of the requests.
const upstreamCluster = "upstream"

// options are the command line.
type options struct {
	wasm, listen, upstream, config string
	noImages                       bool
	imageNetworks                  string
	show                           bool
	workers                        int
}

func main() {
	var o options
	flag.StringVar(&o.wasm, "wasm", "build/out/chat-completions.wasm", "the `file` of the module")
	flag.StringVar(&o.listen, "listen", "127.0.0.1:10000", "the `address` to serve on")
	flag.StringVar(&o.upstream, "upstream", "", "the `URL` of a real upstream; default: a built-in stand-in")
	flag.StringVar(&o.config, "config", "", "a `file` with the plugin's configuration; default: made for the upstream")
	flag.BoolVar(&o.noImages, "no-images", false, "refuse images that requests name by URL, instead of downloading them from public addresses")
	flag.StringVar(&o.imageNetworks, "image-networks", "", "private `networks` that images may come from all the same, such as 10.1.0.0/16,fd00::/8; "+
		"with -config, literal addresses also need its images.allow_private")
	flag.BoolVar(&o.show, "show", false, "print each request as it goes upstream, without keys and whole files")
	flag.IntVar(&o.workers, "workers", min(runtime.GOMAXPROCS(0), workersMax), "the `number` of VMs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout, log.New(os.Stderr, "", log.LstdFlags)); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. The pasteable lines and what -show prints go to
// out, everything else to logger.
func run(ctx context.Context, o options, out io.Writer, logger *log.Logger) error {
	module, err := os.ReadFile(o.wasm)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w; `make wasm` builds it", err)
	}
	if err != nil {
		return err
	}
	up, err := openUpstream(o.upstream, logger)
	if err != nil {
		return err
	}
	defer up.close()
	plugin, err := pluginConfig(o, up.url.Host)
	if err != nil {
		return err
	}
	egress, err := openEgress(o.imageNetworks, logger)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	host, err := harness.New(ctx, module, hostConfig(o, plugin, up, egress, out, logger))
	if err != nil {
		return err
	}
	defer func() {
		if err := host.Close(context.WithoutCancel(ctx)); err != nil {
			logger.Print("close: ", err)
		}
	}()
	server := &http.Server{
		Handler: host.Proxy(harness.ProxyOptions{
			Prefix: plugin.prefix,
			Edge:   true,
			Log:    func(err error) { logger.Print("connection: ", err) },
		}),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       connectionIdle,
		MaxHeaderBytes:    headerBytesMax,
		ErrorLog:          logger,
	}
	fmt.Fprint(out, greeting(listener.Addr().String(), plugin, up))
	return serve(ctx, server, listener)
}

// serve runs the server until ctx ends, and then lets it finish.
func serve(ctx context.Context, server *http.Server, listener net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // streams that are still open are cut
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// upstream is where requests go.
type upstream struct {
	url       *url.URL
	builtIn   bool
	transport *http.Transport
	stop      func()
}

func (u *upstream) close() {
	u.stop()
	u.transport.CloseIdleConnections()
}

// openUpstream takes the given upstream, or starts the stand-in.
func openUpstream(given string, logger *log.Logger) (*upstream, error) {
	transport := harness.NewTransport()
	if given != "" {
		u, err := url.Parse(given)
		if err != nil {
			return nil, fmt.Errorf("-upstream: %w", err)
		}
		if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return nil, fmt.Errorf("-upstream: %q is not an http or https URL", given)
		}
		if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil {
			return nil, fmt.Errorf("-upstream: %q has more than a scheme and a host; paths are set in the plugin's configuration", given)
		}
		return &upstream{url: u, transport: transport, stop: func() {}}, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	handler := standin.New(standin.Options{})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, ErrorLog: logger}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Print("stand-in: ", err)
		}
	}()
	return &upstream{
		url: &url.URL{Scheme: "http", Host: listener.Addr().String()}, builtIn: true, transport: transport,
		stop: func() {
			handler.Close()
			if err := server.Close(); err != nil {
				logger.Print("stand-in: ", err)
			}
		},
	}, nil
}

// openEgress makes the way out for image downloads.
func openEgress(allowed string, logger *log.Logger) (*harness.Egress, error) {
	allow, err := networks(allowed)
	if err != nil {
		return nil, err
	}
	return harness.NewEgress(harness.EgressOptions{
		Allow: allow,
		Log:   func(d harness.Download) { logger.Print(imageLine(d)) },
	}), nil
}

// hostConfig sets the harness up: real time and randomness, a cluster for
// requests and those for images.
func hostConfig(o options, plugin plugin, up *upstream, egress *harness.Egress, out io.Writer, logger *log.Logger) harness.Config {
	clusters := map[string]harness.Cluster{}
	for _, name := range plugin.images {
		clusters[name] = harness.Cluster{Egress: egress}
	}
	var transport http.RoundTripper = up.transport
	if o.show {
		transport = &harness.Recorder{
			Next: transport, CountMax: recordedRequestsMax, BodyBytesMax: recordedBytesMax,
			OnRequest: newShower(out).show,
		}
	}
	clusters[upstreamCluster] = harness.Cluster{Transport: transport, Scheme: up.url.Scheme, Authority: up.url.Host}
	return harness.Config{
		PluginConfig: plugin.text, PluginName: "chat-completions", RootID: "chat-completions", VMID: "chat-completions",
		Workers:           o.workers,
		ReloadBackoff:     reloadBackoff,
		BufferBytesMax:    bufferBytesMax,
		HeaderBytesMax:    headerBytesMax,
		StreamIdleTimeout: streamIdleTimeout,
		Clock:             harness.RealClock(),
		Random:            rand.Reader,
		LogLevel:          harness.Info,
		Clusters:          clusters,
		Routes:            []harness.Route{{Name: "default", Prefix: "/", Cluster: upstreamCluster}},
		Log:               func(l harness.LogLine) { logger.Printf("module %s: %s", l.Level, l.Message) },
		AccessLog:         func(a harness.Access) { logger.Print(accessLine(a)) },
	}
}
