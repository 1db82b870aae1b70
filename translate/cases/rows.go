package cases

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

//go:embed rows.txt
var rowsText string

//go:embed rows_to_come.txt
var toComeText string

// Row is one testable line of the contract, the operator's page or the decisions.
type Row struct {
	ID    string
	Text  string
	Tests []TestRef // Go tests that are the evidence, besides the cases that name the row
}

// TestRef names a Go test as `test: <directory>.<name>` does in rows.txt.
type TestRef struct{ Dir, Name string }

func (t TestRef) String() string { return t.Dir + "." + t.Name }

// Level is the level at which the test shows the row.
func (t TestRef) Level() Level {
	switch {
	case strings.HasPrefix(t.Dir, "translate"):
		return Core
	case t.Dir == "e2e" || strings.HasPrefix(t.Dir, "e2e/"):
		return Envoy
	}
	return Wasm
}

// Rows reads rows.txt.
func Rows() ([]Row, error) { return parseRows(rowsText) }

var (
	rowLine  = regexp.MustCompile(`^([a-z0-9]+(?:[._-][a-z0-9]+)*)\s+(\S.*)$`)
	testLine = regexp.MustCompile(`^\s+test: ([a-z0-9/_]+)\.(Test[A-Za-z0-9_]*|Fuzz[A-Za-z0-9_]*|Example[A-Za-z0-9_]*)$`)
)

func parseRows(text string) ([]Row, error) {
	var rows []Row
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if m := testLine.FindStringSubmatch(line); m != nil && len(rows) > 0 {
			last := &rows[len(rows)-1]
			last.Tests = append(last.Tests, TestRef{Dir: m[1], Name: m[2]})
			continue
		}
		m := rowLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("rows.txt: neither a row nor a test: %q", line)
		}
		if seen[m[1]] {
			return nil, fmt.Errorf("rows.txt: %s: twice", m[1])
		}
		seen[m[1]] = true
		rows = append(rows, Row{ID: m[1], Text: m[2]})
	}
	return rows, nil
}

// RowsToCome reads rows_to_come.txt: the ids of rows without evidence, each with the
// reason.
func RowsToCome() (map[string]string, error) {
	rows, err := parseRows(toComeText)
	if err != nil {
		return nil, fmt.Errorf("rows_to_come.txt: %w", err)
	}
	reasons := map[string]string{}
	for _, r := range rows {
		reasons[r.ID] = r.Text
	}
	return reasons, nil
}

// CheckRows says what is wrong between rows, cases and the rows to come: a case that
// names an unknown row, a row without evidence, a row still listed as to come that
// has evidence, and evidence that does not exist.
func CheckRows(rows []Row, all []*Case, toCome map[string]string, exists func(TestRef) bool) []string {
	var faults []string
	evidence := map[string]int{}
	for _, r := range rows {
		evidence[r.ID] = 0
		for _, t := range r.Tests {
			if !exists(t) {
				faults = append(faults, fmt.Sprintf("%s: there is no test %s", r.ID, t))
				continue
			}
			evidence[r.ID]++
		}
	}
	for _, c := range all {
		for _, id := range c.Rules {
			if _, known := evidence[id]; !known {
				faults = append(faults, fmt.Sprintf("%s: rule %s is not in rows.txt", c.Name, id))
				continue
			}
			evidence[id]++
		}
	}
	for _, r := range rows {
		_, coming := toCome[r.ID]
		switch {
		case evidence[r.ID] == 0 && !coming:
			faults = append(faults, fmt.Sprintf("%s: no case and no test shows this row", r.ID))
		case evidence[r.ID] > 0 && coming:
			faults = append(faults, fmt.Sprintf("%s: has evidence now, take it off rows_to_come.txt", r.ID))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(toCome)) {
		if _, known := evidence[id]; !known {
			faults = append(faults, fmt.Sprintf("rows_to_come.txt: %s is not in rows.txt", id))
		}
	}
	return faults
}

// Coverage renders the table of COVERAGE.md: each row, its cases and tests, and the
// levels at which they run.
func Coverage(rows []Row, all []*Case, toCome map[string]string) string {
	var out strings.Builder
	out.WriteString("# Coverage\n\n")
	out.WriteString("Every row of the contract, the operator's page and the decisions (rows.txt), the cases and Go tests that show it,\n")
	out.WriteString("and the levels at which these run. Written by `UPDATE=1 go test ./translate/cases`; a test fails when it is stale.\n\n")
	fmt.Fprintf(&out, "%d rows, %d cases, %d rows to come.\n\n", len(rows), len(all), len(toCome))
	out.WriteString("| row | what it says | levels | cases and tests |\n| --- | --- | --- | --- |\n")
	byRow := map[string][]*Case{}
	for _, c := range all {
		for _, id := range c.Rules {
			byRow[id] = append(byRow[id], c)
		}
	}
	for _, r := range rows {
		levels := map[Level]bool{}
		var names []string
		for _, c := range byRow[r.ID] {
			names = append(names, fmt.Sprintf("[%s](%s.txtar)", c.Name, c.Name))
			for _, l := range c.Levels {
				levels[l] = true
			}
		}
		for _, t := range r.Tests {
			names = append(names, "`"+t.String()+"`")
			levels[t.Level()] = true
		}
		var ran []string
		for _, l := range allLevels {
			if levels[l] {
				ran = append(ran, string(l))
			}
		}
		if why, coming := toCome[r.ID]; coming {
			ran = []string{"to come"}
			names = []string{why}
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", r.ID, strings.ReplaceAll(r.Text, "|", `\|`), strings.Join(ran, " "), strings.Join(names, ", "))
	}
	return out.String()
}
