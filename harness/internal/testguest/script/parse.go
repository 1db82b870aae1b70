//go:build wasip1

package main

import (
	"strconv"
	"strings"
)

// parse reads the rules. It returns what is wrong, or "".
func parse(text string) string {
	rules = nil
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		head, ops, ok := strings.Cut(line, ":")
		if !ok {
			return "no colon in " + line
		}
		var r rule
		head, r.path, _ = strings.Cut(head, "@")
		head, count, counted := strings.Cut(head, "#")
		r.callback = head
		if n, err := strconv.Atoi(count); counted && err == nil {
			r.nth = n
		} else if counted {
			return "bad count in " + line
		}
		var fault string
		if r.ops, fault = split(ops); fault != "" {
			return fault
		}
		rules = append(rules, r)
	}
	return ""
}

// split cuts a rule into ops, and these into words.
func split(text string) (ops [][]string, fault string) {
	var op []string
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		if text[0] == ';' {
			ops, op, text = append(ops, op), nil, text[1:]
			continue
		}
		word := text
		if quoted, err := strconv.QuotedPrefix(text); err == nil {
			text = text[len(quoted):]
			if word, err = strconv.Unquote(quoted); err != nil {
				return nil, err.Error()
			}
		} else {
			end := strings.IndexAny(text, " ;")
			if end < 0 {
				end = len(text)
			}
			word, text = text[:end], text[end:]
		}
		if strings.HasPrefix(text, "*") {
			end := 1
			for end < len(text) && text[end] >= '0' && text[end] <= '9' {
				end++
			}
			n, err := strconv.Atoi(text[1:end])
			if err != nil {
				return nil, err.Error()
			}
			word, text = strings.Repeat(word, n), text[end:]
		}
		op = append(op, word)
	}
	if op != nil {
		ops = append(ops, op)
	}
	return ops, ""
}
