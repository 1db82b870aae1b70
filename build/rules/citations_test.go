package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNamedTestsExist: where a document says which test holds something, as
// `folder.TestName`, that test is there.
func TestNamedTestsExist(t *testing.T) {
	named := regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz|Example)[A-Za-z0-9_]*)`")
	found := 0
	for _, file := range tracked(t) {
		if !strings.HasSuffix(file, ".md") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			if !hasTest(t, m[1], m[2]) {
				t.Errorf("%s names %s.%s, which does not exist", file, m[1], m[2])
			}
		}
	}
	if found < 30 {
		t.Fatalf("only %d tests are named: the rule would prove nothing", found)
	}
}

// TestThreatModelNamesEveryCapability: the table of capabilities has what the shipped
// file allows, all of it and nothing else. Callbacks are the host's to call.
func TestThreatModelNamesEveryCapability(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, allowed, found := strings.Cut(read("envoy.yaml"), "allowed_capabilities:\n")
	if !found {
		t.Fatal("envoy.yaml has no list of capabilities")
	}
	_, table, _ := strings.Cut(read(".github/THREAT-MODEL.md"), "| capability |")
	table, _, _ = strings.Cut(table, "\n\n")
	named := map[string]bool{}
	for _, row := range strings.Split(table, "\n") {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(first, -1) {
			named[m[1]] = true
		}
	}
	count := 0
	for line := range strings.Lines(allowed) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "proxy_on_") {
			continue
		}
		name, ok := strings.CutSuffix(line, ": {}")
		if !ok {
			break // the list has ended
		}
		if count++; !named[name] {
			t.Errorf("the threat model does not speak of %s", name)
		}
		delete(named, name)
	}
	for name := range named {
		t.Errorf("the threat model speaks of %s, which is not allowed", name)
	}
	if count < 20 {
		t.Errorf("only %d capabilities are listed: the rule would prove nothing", count)
	}
}

// hasTest tells whether a folder has a test of that name.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
