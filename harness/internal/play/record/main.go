// Command record runs the plays on a real Envoy and writes the transcripts
// that the harness is held against:
//
//	go run ./harness/internal/play/record -envoy PATH harness/testdata/*.txtar
//
// With -check it writes nothing and fails when a transcript would change. Run
// it by hand when Envoy's version moves.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"ezat.io/chat-completions/harness/internal/play"
	"ezat.io/chat-completions/harness/internal/testguest"
)

func main() {
	envoy := flag.String("envoy", "envoy", "the Envoy binary")
	check := flag.Bool("check", false, "only compare")
	verbose := flag.Bool("v", false, "show Envoy's whole log")
	flag.Parse()
	if err := run(*envoy, *check, *verbose, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(envoy string, check, verbose bool, files []string) error {
	dir, err := os.MkdirTemp("", "record")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	guests := map[bool]string{}
	for abi021, tags := range map[bool][]string{false: nil, true: {"abi021"}} {
		if guests[abi021], err = testguest.Build(dir, "script", tags...); err != nil {
			return err
		}
	}
	changed := 0
	var faults []error
	for _, file := range files {
		c, err := play.Load(file)
		if err != nil {
			return err
		}
		transcript, err := perform(envoy, guests[c.Options.ABI021], c, verbose)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", file, err))
			continue
		}
		if transcript == c.Transcript {
			fmt.Println("same   ", file)
			continue
		}
		changed++
		fmt.Println("changed", file)
		if check {
			fmt.Println(transcript)
			continue
		}
		old, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, play.WithTranscript(old, transcript), 0o644); err != nil {
			return err
		}
	}
	if check && changed > 0 {
		faults = append(faults, fmt.Errorf("%d of %d transcripts differ", changed, len(files)))
	}
	return errors.Join(faults...)
}

// perform plays one case on an Envoy of its own.
func perform(envoy, guest string, c *play.Case, verbose bool) (string, error) {
	dir, err := os.MkdirTemp("", "play")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	s, err := newStage(c)
	if err != nil {
		return "", err
	}
	defer s.close()
	config := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(config, s.config(guest, c), 0o600); err != nil {
		return "", err
	}
	if err := s.start(envoy, config, verbose); err != nil {
		return "", err
	}
	s.settle(startFor)
	s.mu.Lock()
	s.transcript.Start()
	s.mu.Unlock()
	for _, step := range c.Steps {
		if err := s.do(step); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", step.Line, err, s.transcript)
		}
		s.settle(settleFor)
		s.mu.Lock()
		s.transcript.Step(step.Line)
		s.mu.Unlock()
	}
	return s.transcript.String(), nil
}
