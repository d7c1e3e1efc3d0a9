package answer

import (
	"slices"
	"strings"
)

// OwnSentences are what answers about an article say in words that are not about
// it, with a subject that offers no phrase itself.
func OwnSentences() []string {
	own := slices.Concat(preludes, firstOpenings, laterOpenings, closings, []string{reminder})
	for i := range own {
		own[i] = strings.ReplaceAll(own[i], "%s", `"it"`)
	}
	return own
}

// Overview is what a first answer about a built-in article says.
func Overview(topic string) (all []string) {
	for _, x := range articles()[topic] {
		if x.overview {
			all = append(all, x.sentences...)
		}
	}
	return all
}
