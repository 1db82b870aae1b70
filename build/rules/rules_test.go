// Package rules holds the house to its plan: what a folder may touch, what the
// top level has, and what no file may say. A rule that no test keeps is a wish.
package rules

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

const sdk = "github.com/tetratelabs/proxy-wasm-go-sdk"

// coreImports are all that package translate and its floors may import: nothing
// that reads a clock, draws randomness, logs, or reflects.
var coreImports = []string{
	"bytes", "encoding/base64", "math", "math/bits", "slices", "strconv", "strings", "unicode", "unicode/utf8", "unsafe",
	"ezat.io/chat-completions/translate/internal/hash",
	"ezat.io/chat-completions/translate/internal/jsontext",
	"ezat.io/chat-completions/translate/internal/sse",
}

// heavyImports cost the module size and speed (reference figures in RATIONALE.md).
var heavyImports = []string{"fmt", "encoding/json", "reflect", "log", "net/http", "text/template", "regexp"}

// tracked lists the files of the repository, new ones included.
func tracked(t *testing.T) []string {
	t.Helper()
	command := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var files []string
	for _, file := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if _, err := os.Stat(filepath.Join(root, file)); err == nil {
			files = append(files, file)
		}
	}
	if len(files) < 50 {
		t.Fatalf("only %d files found: the rules would prove nothing", len(files))
	}
	return files
}

func goFiles(t *testing.T, prefix string) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	for _, file := range tracked(t) {
		if !strings.HasPrefix(file, prefix) || !strings.HasSuffix(file, ".go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files[file] = parsed
	}
	if len(files) == 0 {
		t.Fatalf("no Go files below %q", prefix)
	}
	return files
}

func imports(file *ast.File) []string {
	var paths []string
	for _, spec := range file.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}

func isTest(file string) bool { return strings.HasSuffix(file, "_test.go") }

func TestCoreIsPure(t *testing.T) {
	for file, parsed := range goFiles(t, "translate/") {
		if isTest(file) || strings.HasPrefix(file, "translate/cases/") {
			continue
		}
		for _, path := range imports(parsed) {
			if !slices.Contains(coreImports, path) {
				t.Errorf("%s imports %s: the core may not", file, path)
			}
		}
		for _, decl := range parsed.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				if g, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s starts a goroutine at %d: the core may not", file, g.Pos())
				}
				return true
			})
		}
	}
}

func TestOnlyTheBridgeKnowsTheSDK(t *testing.T) {
	for file, parsed := range goFiles(t, "") {
		bridge := strings.HasPrefix(file, "filter/abi")
		for _, path := range imports(parsed) {
			if strings.HasPrefix(path, sdk) && !bridge {
				t.Errorf("%s imports %s", file, path)
			}
		}
		guest := bridge || strings.HasPrefix(file, "build/bench/guest/") // modules of their own
		if guest || strings.HasPrefix(file, "harness/") || strings.HasPrefix(file, "e2e/") || isTest(file) {
			continue
		}
		for _, group := range parsed.Comments {
			for _, comment := range group.List {
				for _, directive := range []string{"//go:wasmexport", "//go:wasmimport", "//go:linkname"} {
					if strings.HasPrefix(comment.Text, directive) {
						t.Errorf("%s has %s", file, directive)
					}
				}
			}
		}
	}
}

func TestModuleStaysLight(t *testing.T) {
	for _, prefix := range []string{"filter/", "translate/"} {
		for file, parsed := range goFiles(t, prefix) {
			if isTest(file) || strings.HasPrefix(file, "translate/cases/") {
				continue
			}
			for _, path := range imports(parsed) {
				if slices.Contains(heavyImports, path) {
					t.Errorf("%s imports %s, which costs the module size and speed", file, path)
				}
			}
		}
	}
}

func TestTopLevel(t *testing.T) {
	allowed := strings.Fields("filter translate harness envoy.yaml build e2e go.mod go.sum Makefile README.md RATIONALE.md LICENSE NOTICE")
	for _, file := range tracked(t) {
		top, _, _ := strings.Cut(file, "/")
		if !strings.HasPrefix(top, ".") && !slices.Contains(allowed, top) {
			t.Errorf("%s: the top level is fixed", file)
		}
	}
}

// TestFunctionsAreShort keeps what ships within a screen: 70 lines, comments and
// tests not counted.
func TestFunctionsAreShort(t *testing.T) {
	const linesMax = 70
	for _, file := range tracked(t) {
		if !strings.HasSuffix(file, ".go") || isTest(file) {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, filepath.Join(root, file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				if lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; lines > linesMax {
					t.Errorf("%s: %s has %d lines, more than %d", file, f.Name.Name, lines, linesMax)
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	documented := map[string]bool{}
	for file, parsed := range goFiles(t, "") {
		dir := filepath.Dir(file)
		documented[dir] = documented[dir] || parsed.Doc != nil
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package in %s has no package comment", dir)
		}
	}
}

// TestNoForeignPlaces finds what a repository must not carry: paths of a
// developer's machine and the hosts of package registries.
func TestNoForeignPlaces(t *testing.T) {
	forbidden := regexp.MustCompile(strings.Join([]string{
		`/wo` + `rk/(main|shared)`, `/ro` + `ot/`, `/ho` + `me/[a-z]`,
		`registry\.np` + `mjs\.org`, `proxy\.gol` + `ang\.org`, `py` + `pi\.org`, `files\.pythonhos` + `ted\.org`,
	}, "|"))
	for _, file := range tracked(t) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if found := forbidden.Find(line); found != nil {
				t.Errorf("%s:%d says %q", file, i+1, found)
			}
		}
	}
}

// TestDependenciesAreReasoned: every direct dependency is named in RATIONALE.md.
func TestDependenciesAreReasoned(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	rationale, err := os.ReadFile(filepath.Join(root, "RATIONALE.md"))
	if err != nil {
		t.Fatal(err)
	}
	required := regexp.MustCompile(`(?m)^\s*(?:require )?(\S+\.\S+/\S+) v\S+$`).FindAllSubmatch(mod, -1)
	if len(required) == 0 {
		t.Fatal("go.mod has no direct dependencies: the rule would prove nothing")
	}
	for _, match := range required {
		if !bytes.Contains(rationale, match[1]) {
			t.Errorf("RATIONALE.md gives no reason for %s", match[1])
		}
	}
}
