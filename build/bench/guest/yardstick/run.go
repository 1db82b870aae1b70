//go:build wasip1

package main

import (
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"ezat.io/chat-completions/build/bench/guest"
	"ezat.io/chat-completions/build/bench/loops"
)

func init() { guest.Run = run }

// run times the validation. mode is for how many milliseconds it may run.
func run(mode string, body []byte) []byte {
	ms, err := strconv.Atoi(mode)
	if err != nil {
		return []byte("no time limit in " + mode)
	}
	return guest.Encode(loops.Time(time.Duration(ms)*time.Millisecond, func(n int) {
		for range n {
			if !gjson.ValidBytes(body) {
				panic("not valid")
			}
		}
	}))
}
