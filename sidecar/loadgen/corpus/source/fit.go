package source

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/sim/bpe"
)

// The length of a starter in tokens, and limits of a corpus.
const (
	leastTokens = 3500
	mostTokens  = 4000
	maxBytes    = 64 << 10 // of a text; the rest is cut off, since no starter needs more
	maxStarters = 1000     // more would hardly share a prefix
)

// span is a range of lengths in tokens.
type span struct{ least, most int }

// fitted is a corpus whose texts have the length of starters.
type fitted struct {
	starters    []corpus.Starter
	cut, joined int
	skipped     []api.SkippedItem
}

func (f *fitted) skip(reason string, items ...item) {
	for _, it := range items {
		f.skipped = append(f.skipped, api.SkippedItem{Name: it.name, Reason: reason})
	}
}

// fit makes starters of texts. The result does not depend on the order of the texts, so that
// the same texts give the same conversations.
func fit(items []item) *fitted {
	f := &fitted{}
	slices.SortStableFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.ID, b.ID), cmp.Compare(a.name, b.name))
	})
	items = f.unique(items)
	for len(items) > 0 {
		n := slices.IndexFunc(items, func(it item) bool { return it.Topic != items[0].Topic })
		if n < 0 {
			n = len(items)
		}
		f.topic(items[:n])
		items = items[n:]
	}
	slices.SortFunc(f.starters, func(a, b corpus.Starter) int { return cmp.Compare(a.ID, b.ID) })
	return f
}

// unique skips texts whose id is taken.
func (f *fitted) unique(items []item) (kept []item) {
	owner := map[string]string{}
	for _, it := range items {
		if first, taken := owner[it.ID]; taken {
			f.skip(fmt.Sprintf("its id %q is that of %s", it.ID, first), it)
			continue
		}
		owner[it.ID] = it.name
		kept = append(kept, it)
	}
	return kept
}

// topic makes starters of the texts of one topic: a text that is long enough by itself, short
// ones joined with the next, and scripts unchanged.
func (f *fitted) topic(items []item) {
	var text string
	var parts []item
	n := 0 // tokens of the text; mostTokens+1 stands for more
	for _, it := range items {
		if len(f.starters) == maxStarters {
			f.skip(fmt.Sprintf("the limit of %d starters is reached", maxStarters), it)
			continue
		}
		if len(it.script) > 0 {
			f.starters = append(f.starters, corpus.Starter{ID: it.ID, Topic: it.Topic, Script: it.script})
			continue
		}
		if len(parts) == 0 {
			text = it.Text
		} else {
			text = strings.TrimSpace(text + "\n\n" + it.Text)
		}
		parts = append(parts, it)
		n = mostTokens + 1
		if len(text) < maxBytes {
			n = corpus.Tokens(text)
		}
		if n >= leastTokens {
			f.add(text, n, parts)
			text, parts = "", nil
		}
	}
	if len(parts) > 0 {
		f.skip(fmt.Sprintf("it is too short: about %d tokens, even joined with the other texts; a starter has %d to %d",
			n, leastTokens, mostTokens), parts...)
	}
}

// add makes a starter of a text of n tokens, which must be enough, with the id of its first
// part.
func (f *fitted) add(text string, n int, parts []item) {
	if n > mostTokens {
		var ok bool
		if text, ok = (span{leastTokens, mostTokens}).cut(text); !ok {
			f.skip(fmt.Sprintf("it is too long, and none of its sentences ends at %d to %d tokens", leastTokens,
				mostTokens), parts...)
			return
		}
		f.cut++
	}
	if len(parts) > 1 {
		f.joined++
	}
	f.starters = append(f.starters, corpus.Starter{ID: parts[0].ID, Topic: parts[0].Topic, Text: text})
}

var sentenceEnd = regexp.MustCompile(`[.!?…]["'”’)\]]*(?:\s+|$)|\n+|[。！？]["」』）]*`)

// cut ends a text after the last sentence that is within the span; false means that there is
// none.
func (s span) cut(text string) (string, bool) {
	if len(text) > maxBytes {
		at := maxBytes
		for !utf8.RuneStart(text[at]) {
			at--
		}
		text = text[:at]
	}
	ends := sentenceEnd.FindAllStringIndex(text[:bpe.Leading(text, s.most)], -1)
	for i := len(ends) - 1; i >= 0; i-- {
		short := strings.TrimSpace(text[:ends[i][1]])
		if n := corpus.Tokens(short); n <= s.most { // the end may have other tokens than within the text
			return short, n >= s.least
		}
	}
	return "", false
}

// version identifies the contents of a corpus.
func version(starters []corpus.Starter) string {
	hash := sha256.New()
	for _, s := range starters {
		fmt.Fprintf(hash, "%q%q%q", s.ID, s.Topic, s.Text)
		for _, turn := range s.Script {
			fmt.Fprintf(hash, "%q", turn)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:4])
}
