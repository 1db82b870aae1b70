package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/tools/txtar"
)

// Update returns the case's file with its expectations taken from the outcome at the
// core level. It changes values, never the kind of an exchange: a case that wants no
// call, or an error where an answer came, stays as it is and fails. A message that
// promises only its beginning is filled in when that beginning fits.
func (c *Case) Update(o Outcome) ([]byte, error) {
	if len(o.Upstream) != len(c.Calls) {
		return nil, fmt.Errorf("%s: the upstream was called %d times, the case wants %d: not updated", c.Name, len(o.Upstream), len(c.Calls))
	}
	if o.Status != c.Client.Status {
		return nil, fmt.Errorf("%s: status %d, the case wants %d: not updated", c.Name, o.Status, c.Client.Status)
	}
	a := &txtar.Archive{Comment: c.archive.Comment, Files: slices.Clone(c.archive.Files)}
	for i := range a.Files {
		f := &a.Files[i]
		var got []byte
		switch f.Name {
		case "upstream.request.json":
			got = o.Upstream[0].Body
		case "client.json", "client.sse":
			got = o.Body
		case "usage.json":
			got = o.Usage
		}
		if got == nil {
			continue
		}
		if m := unfilled.FindSubmatch(f.Data); m != nil && !bytes.Contains(got, append([]byte(`"message":"`), m[1]...)) {
			return nil, fmt.Errorf("%s: %s does not begin its message with %q: not updated", c.Name, f.Name, m[1])
		}
		data, err := renew(f.Name, f.Data, got)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", c.Name, f.Name, err)
		}
		f.Data = data
	}
	return txtar.Format(a), nil
}

// renew keeps a section's layout when only white space differs.
func renew(name string, old, got []byte) ([]byte, error) {
	if name == "client.sse" {
		return got, nil
	}
	compactGot, err := compact(got)
	if err != nil {
		return nil, err
	}
	if compactOld, err := compact(old); err == nil && bytes.Equal(compactOld, compactGot) {
		return old, nil
	}
	const lineMax = 160
	if len(compactGot) <= lineMax {
		return append(compactGot, '\n'), nil
	}
	var out bytes.Buffer
	if err := json.Indent(&out, compactGot, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
