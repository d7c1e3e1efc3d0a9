package config

import (
	"slices"
	"strings"
)

// suggest appends the nearest existing name to an error about an unknown one.
func suggest(name string, names []string) string {
	for _, section := range []string{name + ".", name + "_"} {
		if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, section) }) {
			return "; did you mean one that begins with " + section + "?"
		}
	}
	nearest := slices.MinFunc(slices.Sorted(slices.Values(names)), func(a, b string) int {
		return edits(name,
			a) - edits(name, b)
	})
	if edits(name, nearest) > 3 {
		return "; see CONFIGURATION.md"
	}
	return "; did you mean " + nearest + "?"
}

// edits returns the Levenshtein distance of two texts, in bytes. A transposition of two bytes counts as one edit.
func edits(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			substitute := row[j]
			if a[i] != b[j] {
				substitute++
			}
			next[j+1] = min(substitute, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
