package cases

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed */*.txtar
var files embed.FS

// All reads the whole corpus, in the order of the names.
func All() ([]*Case, error) { return load(files) }

func load(fsys fs.FS) ([]*Case, error) {
	names, err := fs.Glob(fsys, "*/*.txtar")
	if err != nil {
		return nil, err
	}
	var all []*Case
	var faults []error
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		c, err := Parse(strings.TrimSuffix(name, ".txtar"), data)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all = append(all, c)
	}
	if len(all) == 0 && len(faults) == 0 {
		return nil, fmt.Errorf("no case found")
	}
	return all, errors.Join(faults...)
}
