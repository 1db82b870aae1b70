package directjump

import "testing"

// The tests of the standard library that are quick enough for every run; the
// others are in heavy_test.go.

func TestStrings(t *testing.T) { standardLibrary(t, "strings", "-test.short") }
func TestStrconv(t *testing.T) { standardLibrary(t, "strconv", "-test.short") }
func TestSort(t *testing.T)    { standardLibrary(t, "sort", "-test.short") }
func TestUTF8(t *testing.T)    { standardLibrary(t, "unicode/utf8") }
