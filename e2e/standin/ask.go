package standin

import (
	"slices"
	"strings"
)

// ask is what the conversation asks for at its end.
type ask struct {
	text     string   // the newest text of the user
	answered bool     // tool results came after it
	results  []string // the texts of those results
	rounds   int      // assistant turns with calls since the text
	called   []string // the tools of those calls
	media    int      // images and documents beside the text
}

// newestAsk walks back to the newest text of the user. A text beside tool
// results is newer than they are.
func newestAsk(r *request) ask {
	messages := r.body.at("messages").kids
	var found ask
	for i := len(messages) - 1; i >= 0; i-- {
		content := blocks(messages[i].at("content"))
		if messages[i].text("role") == "assistant" {
			if holds(messages[i], "tool_use") {
				found.rounds++
			}
			for _, block := range content {
				if block.text("type") == "tool_use" {
					found.called = append(found.called, block.text("name"))
				}
			}
			continue
		}
		text, results, media := userTurn(content)
		if text != "" || len(results) == 0 {
			found.text, found.media = text, media
			return found
		}
		if !found.answered {
			found.results = results
		}
		found.answered = true
	}
	return found
}

func userTurn(content []node) (text string, results []string, media int) {
	var texts []string
	for _, block := range content {
		switch block.text("type") {
		case "text":
			texts = append(texts, block.text("text"))
		case "tool_result":
			results = append(results, resultText(block))
		default:
			media++
		}
	}
	return strings.Join(texts, "\n"), results, media
}

func resultText(result node) string {
	var texts []string
	for _, block := range blocks(result.at("content")) {
		if block.text("type") == "text" {
			texts = append(texts, block.text("text"))
		} else {
			texts = append(texts, "["+block.text("type")+"]")
		}
	}
	if len(texts) == 0 {
		return "nothing"
	}
	return strings.Join(texts, " ")
}

// cities are the places that the stand-in knows.
var cities = []string{
	"Amsterdam", "Athens", "Bergen", "Berlin", "Cairo", "Copenhagen", "Delhi", "Dublin", "Helsinki", "Kyoto", "Lima",
	"Lisbon", "London", "Madrid", "Nairobi", "Oslo", "Paris", "Prague", "Rome", "Stockholm", "Sydney", "Tokyo", "Vienna", "Zurich",
}

// named returns the offered tools whose names stand in the text, in the
// order in which they stand there.
func (a ask) named(tools []node) []node {
	places := map[string]int{}
	var found []node
	for _, tool := range tools {
		name := tool.text("name")
		if i := indexWord(a.text, name); i >= 0 {
			places[name] = i
			found = append(found, tool)
		}
	}
	slices.SortStableFunc(found, func(x, y node) int { return places[x.text("name")] - places[y.text("name")] })
	return found
}

// uncalled returns the offered tools that have not been called since the text.
func (a ask) uncalled(tools []node) []node {
	return slices.DeleteFunc(slices.Clone(tools), func(tool node) bool {
		return slices.Contains(a.called, tool.text("name"))
	})
}

// citiesFor returns one city per call of a tool: all that the text names
// when the tool takes a place, else the first.
func (a ask) citiesFor(tool node) []string {
	found := a.cities()
	properties := tool.at("input_schema").at("properties")
	for i := 0; i+1 < len(properties.kids); i += 2 {
		if isPlace(properties.kids[i].str()) {
			return found
		}
	}
	return found[:1]
}

func (a ask) city() string { return a.cities()[0] }

// cities returns the known cities of the text in its order, Oslo if none.
func (a ask) cities() []string {
	places := map[string]int{}
	var found []string
	for _, city := range cities {
		if i := indexWord(a.text, city); i >= 0 {
			places[city] = i
			found = append(found, city)
		}
	}
	slices.SortFunc(found, func(x, y string) int { return places[x] - places[y] })
	if len(found) == 0 {
		return []string{"Oslo"}
	}
	return found
}

// indexWord finds word where it is no part of a longer one.
func indexWord(text, word string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return -1
		}
		start, end := from+i, from+i+len(word)
		if (start == 0 || !wordByte(text[start-1])) && (end == len(text) || !wordByte(text[end])) {
			return start
		}
		from = end
	}
}

func wordByte(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
