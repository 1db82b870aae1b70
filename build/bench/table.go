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

// kept tells whether the figure is within its budget. A figure that is no
// number is not.
func (r *row) kept() bool {
	switch {
	case r.Budget == nil:
		return true
	case r.Budget.AtLeast:
		return r.Value >= r.Budget.Value
	}
	return r.Value <= r.Budget.Value
}

// report is all figures of a run, and what they were measured on.
type report struct {
	Machine []fact    `json:"machine"`
	Began   time.Time `json:"began"`
	Rows    []row     `json:"rows"`

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

// broken lists the figures that are out of their budgets.
func (r *report) broken() []row {
	var rows []row
	for i := range r.Rows {
		if !r.Rows[i].kept() {
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
	switch {
	case r.Budget == nil:
		return ""
	case r.Budget.AtLeast:
		return "≥ " + number(r.Budget.Value)
	}
	return "≤ " + number(r.Budget.Value)
}

func (r *row) verdict() string {
	switch {
	case r.Budget == nil:
		return ""
	case r.kept():
		return "pass"
	}
	return "**FAIL**"
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
	return b.String()
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
