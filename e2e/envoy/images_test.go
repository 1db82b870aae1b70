package envoy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFileWithoutImages holds the file for older versions of Envoy against the
// one that it is made of. UPDATE=1 writes it.
func TestFileWithoutImages(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(root, File))
	if err != nil {
		t.Fatal(err)
	}
	want, err := WithoutImages(string(source))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, filepath.FromSlash(FileWithoutImages))
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not made of %s as it is now: UPDATE=1 writes it", FileWithoutImages, File)
	}
	c, err := ParseConfig(got)
	if err != nil {
		t.Fatal(err)
	}
	for place, value := range flatten(t, c) {
		if strings.Contains(place+value, "image_") || strings.Contains(place, "resolved_address_filter") {
			t.Errorf("%s: %s is still there", place, value)
		}
	}
}

func TestWithoutImages(t *testing.T) {
	const both = "a: 1\n\n# +++ images\nb: 2\n# --- images\nc:\n  # +++ images\n  d: 3\n  # --- images\n  # >>> no-images\n  # # Why.\n  # d: 4\n  # <<< no-images\n"
	got, err := WithoutImages(both)
	if want := "a: 1\nc:\n  # Why.\n  d: 4\n"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	for name, text := range map[string]string{
		"no block":       strings.NewReplacer("+++ images", "", "--- images", "").Replace(both),
		"no example":     strings.ReplaceAll(both, "no-images", "other"),
		"no end":         both + "# +++ images\n",
		"two beginnings": strings.Replace(both, "b: 2", "# +++ images", 1),
		"two ends":       both + "# --- images\n",
	} {
		if out, err := WithoutImages(text); err == nil {
			t.Errorf("%s: no error: %q", name, out)
		}
	}
}

func TestParseImageAccess(t *testing.T) {
	line := `2026-11-30T20:05:07.644Z "image https img.example:8443" 503 flags=UF details=x{a|b:c} sent=22 upstream=-`
	a, err := ParseImageAccess(line)
	if err != nil {
		t.Fatal(err)
	}
	if a.Scheme != "https" || a.Host != "img.example:8443" || a.Status != "503" || a.Fields["details"] != "x{a|b:c}" {
		t.Errorf("%+v", a)
	}
	if !isImageAccess(line) || isImageAccess(`2026-11-30T20:05:07.644Z "POST /image HTTP/1.1" 200 flags=-`) {
		t.Error("the lines of the egress are not told from others")
	}
	for _, bad := range []string{"", "x", strings.Replace(line, "flags=UF", "flags", 1), strings.Replace(line, `8443"`, "8443", 1)} {
		if _, err := ParseImageAccess(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
