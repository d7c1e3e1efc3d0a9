package answer

import (
	"slices"
	"strings"
)

// OwnSentences returns the sentences that frame answers about an article, with a subject that contains no phrase.
func OwnSentences() []string {
	own := slices.Concat(preludes, firstOpenings, laterOpenings, closings, []string{reminder})
	for i := range own {
		own[i] = strings.ReplaceAll(own[i], "%s", `"it"`)
	}
	return own
}

// Overview returns the sentences of a first answer about a built-in article.
func Overview(topic string) (all []string) {
	for _, x := range articles()[topic] {
		if x.overview {
			all = append(all, x.sentences...)
		}
	}
	return all
}
