package config

import "slices"

// suggest ends an error about a name that does not exist.
func suggest(name string, names []string) string {
	nearest := slices.MinFunc(slices.Sorted(slices.Values(names)), func(a, b string) int { return edits(name, a) - edits(name, b) })
	if edits(name, nearest) > 3 {
		return "; see CONFIGURATION.md"
	}
	return "; did you mean " + nearest + "?"
}

// edits is the Levenshtein distance of two texts, in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
