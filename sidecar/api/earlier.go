package api

import (
	"bytes"
	"strings"
)

// earlierNames are the names that fields had in JSON before, with the present ones, which are not longer.
var earlierNames = map[string]string{
	"think_seconds": "think_time", "think_time_seconds": "think_time",
	"span_seconds": "span", "warm_up_seconds": "warm_up", "max_seconds": "max_time",
}

// PresentNames returns JSON with the present names of its fields in place of earlier ones. Files, databases and
// requests of former versions have the latter. The offsets in the text do not change.
func PresentNames(text []byte) []byte {
	for earlier, present := range earlierNames {
		key := []byte(`"` + earlier + `":`)
		if !bytes.Contains(text, key[:len(key)-1]) {
			continue
		}
		text = bytes.ReplaceAll(text, key, []byte(`"`+present+`"`+strings.Repeat(" ", len(earlier)-len(present))+":"))
	}
	return text
}
