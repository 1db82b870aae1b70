package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ezat.io/chat-completions/build/bench/work"
	"ezat.io/chat-completions/e2e/envoy"
	"github.com/tidwall/gjson"
)

// The comparison with LiteLLM's proxy: the same work through both, and straight
// to the stand-in. `make bench-litellm` installs it (litellm.txt) and runs this.

const (
	litellmSection = "Added to a direct call, one connection, ours and LiteLLM's"
	litellmLoad    = "8 connections, one worker each, ours and LiteLLM's"
	litellmStart   = 2 * time.Minute
)

// litellm is a LiteLLM proxy with one worker, as its documentation sets it up for
// production: no debug output, no database, no callbacks.
type litellm struct {
	command *exec.Cmd
	address string
	key     string // the one that it wants of its clients: it does not start without
	output  string // the file with what it prints
	ended   chan error
}

// litellmConfig is its configuration, with the stand-in as Anthropic's API. Parameters
// that a model does not know are dropped, as we do; else it refuses the small chat.
func litellmConfig(upstream string) string {
	return `model_list:
  - model_name: ` + work.Model + `
    litellm_params: {model: ` + work.Model + `, api_base: "http://` + upstream + `", api_key: sk-bench}
litellm_settings: {set_verbose: false, telemetry: false, drop_params: true, request_timeout: 600}
`
}

// startLiteLLM starts it on a free port of the loopback and waits until it answers.
func startLiteLLM(ctx context.Context, program, dir, upstream string) (*litellm, error) {
	config := filepath.Join(dir, "litellm.yaml")
	if err := os.WriteFile(config, []byte(litellmConfig(upstream)), 0o644); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	output, err := os.Create(filepath.Join(dir, "litellm.log"))
	if err != nil {
		return nil, err
	}
	defer output.Close()
	l := &litellm{address: net.JoinHostPort("127.0.0.1", port), key: "sk-" + rand.Text() + rand.Text(), output: output.Name(), ended: make(chan error, 1)}
	l.command = exec.Command(program, "--config", config, "--host", "127.0.0.1", "--port", port, "--num_workers", "1", "--telemetry", "False")
	// Its table of prices comes with it; nothing is to be fetched.
	l.command.Env = append(os.Environ(), "LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_LOG=ERROR", "LITELLM_MODE=PRODUCTION", "NO_PROXY=127.0.0.1", "LITELLM_MASTER_KEY="+l.key)
	l.command.Dir, l.command.Stdout, l.command.Stderr = dir, output, output
	if err := l.command.Start(); err != nil {
		return nil, fmt.Errorf("run `make bench-litellm`, which installs it: %w", err)
	}
	go func() { l.ended <- l.command.Wait() }()
	if err := l.wait(ctx); err != nil {
		return nil, errors.Join(err, l.stop())
	}
	return l, nil
}

// freePort is a port that nobody listens on just now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

func (l *litellm) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, litellmStart)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.address+"/health/liveliness", nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-l.ended:
			l.ended <- err
			return fmt.Errorf("LiteLLM has ended: %w\n%s", err, fileText(l.output))
		case <-ctx.Done():
			return fmt.Errorf("LiteLLM does not answer within %v: %s", litellmStart, fileText(l.output))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// stop ends it, by force if it does not go.
func (l *litellm) stop() error {
	if err := l.command.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-l.ended:
		return nil
	case <-time.After(10 * time.Second):
		return l.command.Process.Kill()
	}
}

// contest is the three ways to the stand-in.
type contest struct {
	upstream *standIn
	ours     *envoy.Envoy
	rival    *litellm
}

func besideLiteLLM(ctx context.Context, r *report, m modules, o options) (err error) {
	root, err := envoy.Root()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-litellm")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var c contest
	if c.upstream, err = newStandIn(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.upstream.err(), c.upstream.close()) }()
	venv := filepath.Join(root, "build", "out", "litellm")
	if c.rival, err = startLiteLLM(ctx, filepath.Join(venv, "bin", "litellm"), dir, c.upstream.address()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.rival.stop()) }()
	if c.ours, err = start(ctx, c.upstream.address(), m.shipped); err != nil {
		return err
	}
	defer stop(c.ours, &err)
	r.Machine = append(r.Machine, fact{"LiteLLM", litellmVersion(root)})
	for _, s := range scenes(o) {
		s.pairs = max(3, s.pairs/10)
		if err := c.added(r, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for _, s := range loads() {
		if err := c.load(r, s, o); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// litellmVersion is the version that litellm.txt pins.
func litellmVersion(root string) string {
	for line := range strings.Lines(fileText(filepath.Join(root, "build", "bench", "litellm.txt"))) {
		if version, ok := strings.CutPrefix(line, "litellm=="); ok {
			return strings.TrimSpace(version)
		}
	}
	return "unknown"
}

// dialAll opens a connection each way, warms both proxies up, and sees that they
// say the same. A rival that fails is a result: why it does is in failed.
func (c *contest) dialAll(s scene) (clients []*client, requests [][]byte, failed string, err error) {
	c.upstream.reply.Store(s.reply)
	rivals := bytes.Replace(s.request, []byte("/openai/v1/"), []byte("/v1/"), 1)
	rivals = bytes.Replace(rivals, []byte("Bearer sk-bench"), []byte("Bearer "+c.rival.key), 1)
	requests = [][]byte{s.request, s.request, rivals}
	var said [3]string
	for i, address := range []string{c.upstream.address(), c.ours.Addr, c.rival.address} {
		client, err := dial(address)
		if err != nil {
			return clients, requests, "", err
		}
		clients = append(clients, client)
		for range 10 {
			msg, err := client.send(requests[i], true)
			if err != nil && i == 2 {
				return clients, requests, fmt.Sprintf("%.200s", err), nil
			}
			if err != nil {
				return clients, requests, "", err
			}
			said[i] = words(msg.body)
		}
	}
	if said[1] == "" || said[1] != said[2] {
		return clients, requests, "", fmt.Errorf("ours says %.200q, LiteLLM %.200q", said[1], said[2])
	}
	return clients, requests, "", nil
}

// words are what an answer says, JSON or stream: its text and its tools' arguments.
func words(body []byte) string {
	if gjson.ValidBytes(body) {
		return gjson.GetBytes(body, "choices.0.message.content").String()
	}
	var b strings.Builder
	for line := range bytes.Lines(body) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: {"))
		if !ok {
			continue
		}
		delta := gjson.GetBytes(append([]byte("{"), data...), "choices.0.delta")
		b.WriteString(delta.Get("content").String())
		b.WriteString(delta.Get("tool_calls.0.function.arguments").String())
	}
	return b.String()
}

func (c *contest) added(r *report, s scene) error {
	clients, requests, failed, err := c.dialAll(s)
	defer closeAll(clients)
	if err != nil {
		return err
	}
	if failed != "" {
		clients, requests = clients[:2], requests[:2]
	}
	taken, err := byTurns(clients, requests, s)
	if err != nil {
		return err
	}
	direct, ours := median(taken[0]), median(taken[1])
	beside := "LiteLLM fails: " + failed
	if failed == "" {
		rival := median(taken[2]) - direct
		beside = fmt.Sprintf("LiteLLM adds %s, %s × as much; a direct call takes %s; medians of %d", number(rival), number(rival/(ours-direct)), number(direct), s.pairs)
	}
	r.add(row{litellmSection, s.name, ours - direct, "ms", nil, beside})
	return nil
}

func closeAll(clients []*client) {
	for _, c := range clients {
		c.close()
	}
}

// load compares the exchanges that each gets through, and what they cost it.
func (c *contest) load(r *report, s scene, o options) error {
	clients, requests, failed, err := c.dialAll(s)
	closeAll(clients)
	if err != nil || failed != "" {
		return errors.Join(err, errors.New(failed))
	}
	var rates, costs [2][]float64
	for range o.windows {
		for i, way := range []struct {
			address string
			pid     int
			request []byte
		}{{c.ours.Addr, c.ours.PID, requests[1]}, {c.rival.address, c.rival.command.Process.Pid, requests[2]}} {
			began := processorTime(way.pid)
			rate, answers, err := load8(way.address, way.request, o.window)
			if err != nil {
				return err
			}
			rates[i] = append(rates[i], rate)
			costs[i] = append(costs[i], float64(processorTime(way.pid)-began)/1000/float64(answers))
		}
	}
	r.add(row{litellmLoad, s.name, median(rates[0]), "/s", nil, fmt.Sprintf(
		"LiteLLM %s /s, ours %s × as many; processor time for each %s and %s µs; resident memory %s and %s", number(median(rates[1])),
		number(median(rates[0])/median(rates[1])), number(median(costs[0])), number(median(costs[1])), resident(c.ours.PID), resident(c.rival.command.Process.Pid))})
	return nil
}

// resident is the memory of a process, as Linux tells it.
func resident(pid int) string { return lineOf(fmt.Sprintf("/proc/%d/status", pid), "VmRSS") }
