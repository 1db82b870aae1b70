package translate

import (
	"strings"
	"testing"
)

func TestKeysAreFoundByTheirLengths(t *testing.T) {
	for _, k := range []*keys{fieldKeys, formatKeys, schemaKeys, streamOptionKeys, messageKeys, partKeys, callKeys, calledKeys,
		toolKeys, functionKeys, choiceKeys, chosenKeys, markKeys, imageKeys, fileKeys, newKeys("a", "b", "cc", "d", "ee")} {
		for i, name := range k.names {
			if got := k.find([]byte(name)); got != i {
				t.Errorf("%q: number %d, want %d", name, got, i)
			}
			for _, other := range []string{name + "x", "x" + name[1:], name[:len(name)-1] + "\x00", strings.ToUpper(name)} {
				if got := k.find([]byte(other)); got != -1 {
					t.Errorf("%q: number %d, and is not known", other, got)
				}
			}
		}
		for _, other := range []string{"", strings.Repeat("m", keyBytesMax), strings.Repeat("m", keyBytesMax+1), strings.Repeat("m", 1<<16)} {
			if got := k.find([]byte(other)); got != -1 {
				t.Errorf("%d bytes: number %d", len(other), got)
			}
		}
	}
}
