//go:build wasip1

package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"ezat.io/chat-completions/build/bench/guest"
	"ezat.io/chat-completions/build/bench/loops"
	"ezat.io/chat-completions/build/bench/work"
)

func init() { guest.Run = run }

// run times one loop. mode is its name and, behind a space, for how many
// milliseconds it may run.
func run(mode string, body []byte) []byte {
	name, limit, _ := strings.Cut(mode, " ")
	ms, err := strconv.Atoi(limit)
	if err != nil {
		return []byte("no time limit in " + mode)
	}
	turn, err := loop(name, body)
	if err != nil {
		return []byte(name + ": " + err.Error())
	}
	return guest.Encode(loops.Time(time.Duration(ms)*time.Millisecond, turn))
}

func loop(name string, body []byte) (turn func(n int), err error) {
	switch name {
	case "request":
		return loops.Request(body, loops.Nothing)
	case "append":
		var host guest.Host
		once, err := loops.Request(body, host.Put)
		return func(n int) {
			for range n {
				host.Begin()
				once(1)
			}
		}, err
	case "text":
		return loops.Stream(work.TextKind, body)
	case "arguments":
		return loops.Stream(work.ArgumentsKind, body)
	case "pieces":
		return loops.Pieces(work.TextKind, body)
	case "base64":
		return loops.Base64(body), nil
	case "copy":
		return loops.Copy(body), nil
	}
	if call := guest.Call(name); call != nil {
		return repeat(call)
	}
	return nil, errors.New("no such loop")
}

// repeat makes a loop of a host call. The first one must go well.
func repeat(call func() uint32) (turn func(n int), err error) {
	if status := call(); status != 0 {
		return nil, errors.New("the host answers with status " + strconv.Itoa(int(status)))
	}
	return func(n int) {
		for range n {
			call()
		}
	}, nil
}
