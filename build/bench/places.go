package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tidwall/gjson"

	"ezat.io/chat-completions/build/bench/guest"
	"ezat.io/chat-completions/build/bench/loops"
	"ezat.io/chat-completions/build/bench/work"
	"ezat.io/chat-completions/e2e/envoy"
	"ezat.io/chat-completions/harness"
)

// place is where loops run.
type place interface {
	// run times a loop of the core on a body.
	run(loop string, body []byte, limit time.Duration) (loops.Figure, error)
	// yardstick times gjson.ValidBytes on a body.
	yardstick(body []byte, limit time.Duration) (loops.Figure, error)
	close() error
}

// coreMode and yardMode are the modes of the guests.
func coreMode(loop string, limit time.Duration) string {
	return fmt.Sprintf("%s %d", loop, limit.Milliseconds())
}

func yardMode(limit time.Duration) string { return fmt.Sprint(limit.Milliseconds()) }

func decode(answer []byte) (loops.Figure, error) {
	f, ok := guest.Decode(string(answer))
	if !ok {
		return f, fmt.Errorf("the guest answered %q", answer)
	}
	return f, nil
}

// inEnvoy runs the loops in Envoy's V8.
type inEnvoy struct {
	envoys  [2]*envoy.Envoy
	clients [2]*client
}

func newInEnvoy(ctx context.Context, m modules) (p *inEnvoy, err error) {
	p = &inEnvoy{}
	// The guests answer by themselves: the upstream is never asked.
	const nobody = "127.0.0.1:9"
	for i, module := range []string{m.core, m.yardstick} {
		if p.envoys[i], err = start(ctx, nobody, module, anyCapability); err != nil {
			return nil, errors.Join(err, p.close())
		}
		if p.clients[i], err = dial(p.envoys[i].Addr); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

func (p *inEnvoy) ask(i int, mode string, body []byte) (loops.Figure, error) {
	msg, err := p.clients[i].send(post(body, guest.ModeHeader+": "+mode), true)
	if err != nil {
		return loops.Figure{}, err
	}
	return decode(msg.body)
}

func (p *inEnvoy) run(loop string, body []byte, limit time.Duration) (loops.Figure, error) {
	return p.ask(0, coreMode(loop, limit), body)
}

func (p *inEnvoy) yardstick(body []byte, limit time.Duration) (loops.Figure, error) {
	return p.ask(1, yardMode(limit), body)
}

func (p *inEnvoy) close() (err error) {
	for i := range p.envoys {
		if p.clients[i] != nil {
			p.clients[i].close()
		}
		if p.envoys[i] != nil {
			stop(p.envoys[i], &err)
		}
	}
	return err
}

// inHarness runs the loops in wazero, under the harness.
type inHarness struct{ hosts [2]*harness.Host }

func newInHarness(ctx context.Context, m modules) (p *inHarness, err error) {
	p = &inHarness{}
	for i, path := range []string{m.core, m.yardstick} {
		module, err := os.ReadFile(path)
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.hosts[i], err = harness.New(ctx, module, harness.Config{
			GoWASI: true, Clock: harness.RealClock(), BufferBytesMax: 128 << 20, CallTimeout: -1,
			Clusters: map[string]harness.Cluster{"anthropic": {}},
		})
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

func (p *inHarness) ask(i int, mode string, body []byte) (loops.Figure, error) {
	answer, _, err := p.hosts[i].Do(context.Background(), harness.Exchange{Request: harness.Message{
		Headers: harness.NewHeaders(":method", "POST", ":scheme", "http", ":path", "/", ":authority", "gateway.test", guest.ModeHeader, mode),
		Body:    body,
	}})
	if err != nil {
		return loops.Figure{}, err
	}
	return decode(answer.Body)
}

func (p *inHarness) run(loop string, body []byte, limit time.Duration) (loops.Figure, error) {
	return p.ask(0, coreMode(loop, limit), body)
}

func (p *inHarness) yardstick(body []byte, limit time.Duration) (loops.Figure, error) {
	return p.ask(1, yardMode(limit), body)
}

func (p *inHarness) close() (err error) {
	for _, h := range p.hosts {
		if h != nil {
			err = errors.Join(err, h.Close(context.Background()))
		}
	}
	return err
}

// native runs the loops as machine code of this program.
type native struct{}

func (native) run(loop string, body []byte, limit time.Duration) (loops.Figure, error) {
	body = loops.Padded(body)
	var turn func(int)
	var err error
	switch loop {
	case "request":
		turn, err = loops.Request(body, loops.Nothing)
	case "append":
		to := make([]byte, 0, len(body)*2)
		var once func(int)
		once, err = loops.Request(body, func(piece []byte) { to = append(to, piece...) })
		turn = func(n int) {
			for range n {
				to = to[:0]
				once(1)
			}
		}
	case "text":
		turn, err = loops.Stream(work.TextKind, body)
	case "arguments":
		turn, err = loops.Stream(work.ArgumentsKind, body)
	case "pieces":
		turn, err = loops.Pieces(work.TextKind, body)
	case "base64":
		turn = loops.Base64(body)
	case "copy":
		turn = loops.Copy(body)
	default:
		err = fmt.Errorf("no loop is called %q", loop)
	}
	if err != nil {
		return loops.Figure{}, err
	}
	return loops.Time(limit, turn), nil
}

func (native) yardstick(body []byte, limit time.Duration) (loops.Figure, error) {
	return loops.Time(limit, func(n int) {
		for range n {
			if !gjson.ValidBytes(body) {
				panic("the benchmark's own work is not JSON")
			}
		}
	}), nil
}

func (native) close() error { return nil }
