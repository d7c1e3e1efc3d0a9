package answer

import "slices"

// OwnSentences are what answers about an article say in words of our own, with a
// subject and a heading that offer no phrase themselves.
func OwnSentences() []string {
	own := slices.Concat(firstOpenings, firstClosings, firstTurns, laterTurns, placeTurns, laterClosings, plainOpenings, reminders, repetitions)
	for _, k := range append(kinds, plainKind) {
		own = append(own, k.opening)
	}
	for i := range own {
		own[i] = fill(own[i], quote("it"))
	}
	return own
}
