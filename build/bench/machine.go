package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"ezat.io/chat-completions/e2e/envoy"
)

// machine says what the figures were measured on. What the system does not
// tell is left out.
func machine(root string) []fact {
	facts := []fact{
		{"processor", fmt.Sprintf("%s, %d cores", lineOf("/proc/cpuinfo", "model name"), runtime.NumCPU())},
		{"memory", lineOf("/proc/meminfo", "MemTotal")},
		{"system", runtime.GOOS + "/" + runtime.GOARCH + " " + strings.TrimSpace(fileText("/proc/sys/kernel/osrelease"))},
		{"load at the start", load()},
		{"Go", runtime.Version()},
		{"Envoy", envoy.Current},
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			switch dep.Path {
			case "github.com/tetratelabs/wazero", "github.com/tidwall/gjson":
				facts = append(facts, fact{dep.Path, dep.Version})
			}
		}
	}
	command := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12")
	command.Dir = root
	if commit, err := command.Output(); err == nil {
		facts = append(facts, fact{"commit", strings.TrimSpace(string(commit))})
	}
	return append(facts, fact{"date", time.Now().UTC().Format("2006-01-02 15:04 MST")})
}

// load is the machine's load average, "" where there is none.
func load() string {
	one, _, _ := strings.Cut(fileText("/proc/loadavg"), " ")
	return one
}

func fileText(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "" // another system
	}
	return string(text)
}

// lineOf is the value of the first "name: value" in a file of the system.
func lineOf(path, name string) string {
	for line := range strings.Lines(fileText(path)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
