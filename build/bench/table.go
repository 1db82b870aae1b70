package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// limit is a budget.
type limit struct {
	Value   float64 `json:"value"`
	AtLeast bool    `json:"at_least,omitempty"`
	// Floor, where it is not 0, is held instead of a budget that has not been
	// reached.
	Floor float64 `json:"floor,omitempty"`
}

// allows tells whether a figure is as good as bound or better. A figure that is
// no number is not.
func (l *limit) allows(v, bound float64) bool {
	if l.AtLeast {
		return v >= bound
	}
	return v <= bound
}

// reached says that the budget could not be kept so far, and which figure holds in
// its place.
func (l *limit) reached(floor float64) *limit {
	l.Floor = floor
	return l
}

// row is one figure.
type row struct {
	Section string  `json:"section"`
	Work    string  `json:"work"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Budget  *limit  `json:"budget,omitempty"`
	Beside  string  `json:"beside,omitempty"` // the same elsewhere, and how it came about
}

// kept tells whether the figure is within its budget.
func (r *row) kept() bool { return r.Budget == nil || r.Budget.allows(r.Value, r.Budget.Value) }

// broken tells whether the figure is over its budget, and over the floor of a
// budget that is known not to be reached: something has made it worse.
func (r *row) broken() bool {
	return !r.kept() && (r.Budget.Floor == 0 || !r.Budget.allows(r.Value, r.Budget.Floor))
}

// comparison is one kind of work, and what several have made of it. All of a
// section have figures of the same names.
type comparison struct {
	Section string   `json:"section"`
	Work    string   `json:"work"`
	Figures []figure `json:"figures"`
}

// figure is one column of a comparison.
type figure struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit,omitempty"`
	Value float64 `json:"value"`
	// None, where it is not empty, says why there is no value.
	None string `json:"none,omitempty"`
}

func (f *figure) text() string {
	if f.None != "" {
		return f.None
	}
	return number(f.Value)
}

// heading is the figure's name with its unit.
func (f *figure) heading() string {
	if f.Unit == "" {
		return f.Name
	}
	return f.Name + ", " + f.Unit
}

// report is all figures of a run, and what they were measured on.
type report struct {
	Machine []fact    `json:"machine"`
	Began   time.Time `json:"began"`
	Rows    []row     `json:"rows,omitempty"`
	// Comparisons stand behind the rows.
	Comparisons []comparison `json:"comparisons,omitempty"`

	progress io.Writer
}

// fact is something that a reader of the figures has to know.
type fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (r *report) add(rows ...row) {
	for i := range rows {
		fmt.Fprintln(r.progress, "  "+rows[i].line())
	}
	r.Rows = append(r.Rows, rows...)
}

func (r *report) compare(c comparison) {
	text := "  " + c.Work
	for i := range c.Figures {
		text += "; " + c.Figures[i].heading() + ": " + c.Figures[i].text()
	}
	fmt.Fprintln(r.progress, text)
	r.Comparisons = append(r.Comparisons, c)
}

// broken lists the figures that are worse than they may be.
func (r *report) broken() []row {
	var rows []row
	for i := range r.Rows {
		if r.Rows[i].broken() {
			rows = append(rows, r.Rows[i])
		}
	}
	return rows
}

func (r *row) line() string {
	text := r.Work + ": " + number(r.Value) + " " + r.Unit
	if r.Budget != nil {
		text += " (" + r.verdict() + ", " + r.budget() + ")"
	}
	return strings.TrimSpace(text)
}

func (r *row) budget() string {
	if r.Budget == nil {
		return ""
	}
	sign := "≤ "
	if r.Budget.AtLeast {
		sign = "≥ "
	}
	text := sign + number(r.Budget.Value)
	if r.Budget.Floor != 0 {
		text += ", held at " + sign + number(r.Budget.Floor)
	}
	return text
}

func (r *row) verdict() string {
	switch {
	case r.Budget == nil:
		return ""
	case r.kept():
		return "pass"
	case r.broken():
		return "**FAIL**"
	}
	return "over"
}

// number spells a figure with three digits that count, or all of a whole part.
func number(v float64) string {
	size := math.Abs(v)
	switch {
	case v == math.Trunc(v) && size < 1e15:
		return group(strconv.FormatInt(int64(v), 10))
	case size >= 100:
		return group(strconv.FormatFloat(v, 'f', 0, 64))
	case size >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// group parts thousands by commas.
func group(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// markdown is the table.
func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\n| measured on | |\n|---|---|\n")
	for _, f := range r.Machine {
		fmt.Fprintf(&b, "| %s | %s |\n", f.Name, f.Value)
	}
	section := ""
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Section != section {
			section = row.Section
			fmt.Fprintf(&b, "\n## %s\n\n| work | figure | unit | budget | | beside it |\n|---|---:|---|---:|---|---|\n", section)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", row.Work, number(row.Value), row.Unit, row.budget(), row.verdict(), row.Beside)
	}
	r.writeComparisons(&b)
	return b.String()
}

func (r *report) writeComparisons(b *strings.Builder) {
	section := ""
	for _, c := range r.Comparisons {
		if c.Section != section {
			section = c.Section
			fmt.Fprintf(b, "\n## %s\n\n| work |", section)
			for i := range c.Figures {
				fmt.Fprintf(b, " %s |", c.Figures[i].heading())
			}
			fmt.Fprintf(b, "\n|---|%s\n", strings.Repeat("---:|", len(c.Figures)))
		}
		fmt.Fprintf(b, "| %s |", c.Work)
		for i := range c.Figures {
			fmt.Fprintf(b, " %s |", c.Figures[i].text())
		}
		b.WriteByte('\n')
	}
}

// write puts the report into NAME.md and NAME.json of a directory.
func (r *report) write(dir, name string) error {
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), append(encoded, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".md"), []byte(r.markdown()), 0o644)
}
