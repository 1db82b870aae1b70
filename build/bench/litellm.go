package main

import (
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
)

// LiteLLM's proxy as a process. contest.go compares it with ours.

// litellmStart bounds its start, and litellmStop how long it may take to end.
const (
	litellmStart = 2 * time.Minute
	litellmStop  = 10 * time.Second
)

// litellmSettings says to a reader how it is set up.
const litellmSettings = "one Uvicorn worker, no database, no callbacks, only errors logged, drop_params, nothing fetched from the web"

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

// litellmEnvironment is all of its environment: a key, a database or a proxy that
// the user's shell names must change neither what it does nor whom it talks to.
// What it would look up on the web, such as prices, comes with it as well.
func litellmEnvironment(dir, key string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8",
		"LITELLM_MASTER_KEY=" + key, "LITELLM_MODE=PRODUCTION", "LITELLM_LOG=ERROR",
		"LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS=True", "LITELLM_LOCAL_BLOG_POSTS=True",
		"LITELLM_LOCAL_POLICY_TEMPLATES=True", "LITELLM_LOCAL_AUTOROUTER_PRESETS=True",
	}
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
	l.command.Env = litellmEnvironment(dir, l.key)
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
	case <-time.After(litellmStop):
	}
	if err := l.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-l.ended
	return nil
}

// installedLiteLLM is the version that a virtual environment holds, and its
// Python's.
func installedLiteLLM(venv string) string {
	found, _ := filepath.Glob(filepath.Join(venv, "lib", "python*", "site-packages", "litellm-*.dist-info")) // the pattern is right
	if len(found) != 1 {
		return "unknown"
	}
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), "litellm-"), ".dist-info")
	python := filepath.Base(filepath.Dir(filepath.Dir(found[0])))
	return version + ", Python " + strings.TrimPrefix(python, "python")
}
