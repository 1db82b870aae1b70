// Command envoy serves the module on a real Envoy with the shipped
// envoy.yaml, for trying it out: see `make envoy`.
//
// Without -upstream a stand-in for Anthropic's API answers, so that no key is
// needed. The command ends at an interrupt.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/e2e/standin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// settings are the command's flags.
type settings struct {
	upstream string // "" is the stand-in
	listen   string
	show     bool
}

func parse(args []string, out io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("envoy", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&s.upstream, "upstream", "", "where requests go: https://HOST[:PORT] or http://HOST:PORT; the built-in stand-in unless set")
	flags.StringVar(&s.listen, "listen", "127.0.0.1:10000", "the address for clients")
	flags.BoolVar(&s.show, "show", false, "print each request as it goes upstream, keys left out")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return s, nil
}

// run serves until ctx ends, or until Envoy does.
func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := free(s.listen); err != nil {
		return err
	}
	out = &lines{w: out}
	upstream, closeUpstream, err := openUpstream(s, out)
	if err != nil {
		return err
	}
	defer closeUpstream()
	fmt.Fprintln(out, "Envoy loads the module; this takes some seconds.")
	e, err := envoy.Start(ctx, envoy.Options{
		Upstreams: []string{upstream}, Listen: s.listen, Concurrency: runtime.NumCPU(), LogLevel: "warning", AccessLog: out,
	})
	if err != nil {
		return err
	}
	fmt.Fprint(out, welcome(s, e))
	select {
	case <-ctx.Done():
	case <-e.Ended():
	}
	return e.Stop()
}

// free looks whether the address can be listened on: Envoy shares a port with
// whoever has it, and the wrong one would answer.
func free(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("clients cannot be served: %w", err)
	}
	return l.Close()
}

// openUpstream returns where Envoy sends its requests: to the upstream itself,
// or to a server of this program in front of it that shows them.
func openUpstream(s settings, out io.Writer) (string, func(), error) {
	var handler http.Handler
	done := func() {}
	if s.upstream == "" {
		server := standin.New(standin.Options{})
		handler, done = server, server.Close
	} else {
		target, err := upstreamURL(s.upstream)
		if err != nil {
			return "", nil, err
		}
		if !s.show {
			return s.upstream, done, nil
		}
		handler = forwardTo(target)
	}
	if s.show {
		handler = show(handler, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: handler}
	go server.Serve(l) // ends with Close
	return "http://" + l.Addr().String(), func() { done(); server.Close() }, nil
}

// welcome says what runs, and how to ask it something.
func welcome(s settings, e *envoy.Envoy) string {
	upstream, key := "a stand-in for Anthropic's API, built in", "any-key"
	if s.upstream != "" {
		upstream, key = s.upstream, "$ANTHROPIC_API_KEY"
	}
	const body = `"model": "anthropic/claude-sonnet-5-5", "max_tokens": 256, "messages": [{"role": "user", "content": "Count from 1 to 5."}]`
	curl := func(options, body string) string {
		return fmt.Sprintf("  curl %s%s/openai/v1/chat/completions -H \"authorization: Bearer %s\" -H \"content-type: application/json\" -d '{%s}'\n",
			options, e.URL, key, body)
	}
	return fmt.Sprintf("\nEnvoy %s serves %s/openai/v1 (administration: %s).\nUpstream: %s\n\n%s\nand as a stream:\n\n%s\n",
		envoy.Current, e.URL, e.Admin, upstream, curl("", body), curl("-N ", body+`, "stream": true`))
}
