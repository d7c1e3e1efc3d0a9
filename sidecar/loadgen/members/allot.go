package members

import (
	"cmp"
	"math"
	"slices"
)

// Block is a range of conversation numbers: From is the first, To the one behind the last.
type Block struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Share is what a member holds of a run. Conversations of its numbers are its own from the
// first turn to the last; none moves to another member.
type Share struct {
	Run         string  `json:"run"`
	Grant       int64   `json:"grant"` // numbers the shares of a run; a member says which it is at
	Concurrency int     `json:"concurrency"`
	StartRate   float64 `json:"start_rate"`           // new conversations a second at most
	TargetRPS   float64 `json:"target_rps,omitempty"` // requests a second at most; 0: no cap
	Given       int64   `json:"given"`                // numbers, ever
	// Blocks are the numbers that it may begin, in this order. Those that it is known to have
	// begun may be left out.
	Blocks []Block `json:"blocks"`
}

// told is what a member has said of a run.
type told struct {
	Grant  int64 // of the share that it is at
	Active int   // conversations in progress
	Begun  int64 // conversations, since its first share of the run
}

// A member has this many numbers in hand for each conversation that it holds: it goes on
// while nobody can give it more, for as long as so many conversations take one after the
// other. However small its share is, it has them as for leastPlaces.
const (
	sparePerPlace = 8
	leastPlaces   = 16
)

// allotment divides a run among members: how many conversations each holds, and of which
// numbers. It is pure: who is present and what they said comes in, shares come out. A number
// is given once. One goroutine uses it.
type allotment struct {
	run     string
	next    int64 // the first number that nobody was ever given
	grant   int64
	holders map[string]*holder
}

// holder is a member as the allotment knows it.
type holder struct {
	share  Share   // as it was given last
	blocks []Block // of which not every number is known to have begun
	given  int64   // numbers, ever
	begun  int64
	// most is how many conversations it may have in progress: what it had, or what it was
	// allowed before it heard of less.
	most int
}

// newAllotment begins with the first number.
func newAllotment(run string) *allotment {
	return &allotment{run: run, holders: map[string]*holder{}}
}

// resume takes over a share that a process before this one gave.
func (a *allotment) resume(member string, s Share) {
	a.next, a.grant = max(a.next, s.end()), max(a.grant, s.Grant)
	a.holders[member] = &holder{share: s, blocks: s.Blocks, given: s.Given, most: s.Concurrency}
}

// candidate is a member that can hold a share.
type candidate struct {
	ID     string
	Weight float64 // 1; 0: nothing more
	Most   int     // conversations that it can hold; 0: it has no bound
	Told   told
}

// total is what all members together are to hold.
type total struct {
	Concurrency          int
	StartRate, TargetRPS float64
}

// divide gives each member its share, and says whose have changed. Members that are no
// candidates any more are forgotten with their numbers. The sum of what members may have in
// progress never is above the total, unless they already have more: a member that is to hold
// more gets it as others have less.
func (a *allotment) divide(t total, members []candidate) (shares map[string]Share, changed []string) {
	members = slices.Clone(members)
	slices.SortFunc(members, func(x, y candidate) int { return cmp.Compare(x.ID, y.ID) })
	present := make(map[string]*holder, len(members))
	free := t.Concurrency
	for _, m := range members {
		h := a.holders[m.ID]
		if h == nil {
			h = &holder{}
		}
		h.begun = max(h.begun, m.Told.Begun)
		if m.Told.Grant >= h.share.Grant {
			h.most = h.share.Concurrency
		}
		h.most = max(h.most, m.Told.Active)
		free -= h.most
		present[m.ID] = h
	}
	a.holders = present
	wanted := apportion(t.Concurrency, members)
	a.spare(t, members, wanted)
	shares = make(map[string]Share, len(members))
	for i, m := range members {
		h := present[m.ID]
		quota := min(wanted[i], h.most+max(0, free))
		if quota > h.most {
			free -= quota - h.most
			h.most = quota
		}
		wanted[i] = quota
	}
	a.number(members, wanted, true)
	a.number(members, wanted, false)
	starts := startParts(members, wanted)
	for i, m := range members {
		h := present[m.ID]
		next := Share{
			Run: a.run, Grant: h.share.Grant, Concurrency: wanted[i], StartRate: t.StartRate * starts[i],
			TargetRPS: t.TargetRPS * fraction(wanted[i], t.Concurrency), Given: h.given, Blocks: h.left(),
		}
		if !next.equal(h.share) {
			a.grant++
			next.Grant = a.grant
			changed = append(changed, m.ID)
		}
		h.share = next
		shares[m.ID] = next
	}
	return shares, changed
}

// spare lets shares move between members no faster than conversations can begin where they move
// to: for each that moves one ends, and at any time no more are missing than begin in a second.
// What is too many in all ends at once, and places that nobody has taken move freely.
func (a *allotment) spare(t total, members []candidate, wanted []int) {
	held, missing := make([]int, len(members)), t.Concurrency
	for i, m := range members {
		held[i] = min(m.Told.Active, a.holders[m.ID].share.Concurrency)
		missing -= held[i]
	}
	may := max(1, int(t.StartRate)) - missing // where there are too many, so many more
	for i := range members {
		ends := max(0, held[i]-wanted[i])
		wanted[i] += max(0, ends-max(0, may))
		may -= ends
	}
}

// A member whose conversations are all there has one usualPart of the rate of starts that one has
// which has yet to begin all. So many of its conversations are always about to begin: where no
// more than that are missing, none is.
const (
	usualPart    = 100
	aboutToBegin = 1. / 32
)

// startParts divides the rate of starts: as members hold conversations, and above all to those
// that miss some, or one that has just come would fill its share at the rate of a small one
// while nobody uses the rest. What is missing counts in eighths of a share, rounded up, so that
// conversations that end and begin change nothing.
func startParts(members []candidate, quotas []int) []float64 {
	parts, sum := make([]float64, len(members)), 0.0
	for i, m := range members {
		if quotas[i] == 0 {
			continue
		}
		eighths := 0.
		if missing := fraction(quotas[i]-m.Told.Active, quotas[i]); missing > aboutToBegin {
			eighths = math.Ceil(8 * missing)
		}
		parts[i] = float64(quotas[i]) * (8 + usualPart*eighths)
		sum += parts[i]
	}
	for i := range parts {
		if sum > 0 {
			parts[i] /= sum
		}
	}
	return parts
}

// number gives numbers: to those that begin exactly as many as they hold, so that the first
// of a run are the lowest, and then to each that has fewer in hand than it holds.
func (a *allotment) number(members []candidate, quotas []int, first bool) {
	for i, m := range members {
		h := a.holders[m.ID]
		n := int64(0)
		switch spare := h.given - h.begun; {
		case quotas[i] == 0:
		case first && h.given == 0:
			n = int64(quotas[i])
		case !first && spare < sparePerPlace*max(int64(quotas[i]), leastPlaces):
			n = sparePerPlace * max(int64(quotas[i]), leastPlaces)
		}
		if n > 0 {
			h.blocks = append(slices.Clone(h.blocks), Block{a.next, a.next + n})
			a.next += n
			h.given += n
		}
	}
}

// left are the blocks of which not every number is known to have begun.
func (h *holder) left() []Block {
	over := h.begun - h.given
	for _, b := range h.blocks {
		over += b.To - b.From
	}
	for len(h.blocks) > 0 && over >= h.blocks[0].To-h.blocks[0].From {
		over -= h.blocks[0].To - h.blocks[0].From
		h.blocks = h.blocks[1:]
	}
	return h.blocks
}

// equal says whether a member that is at one share has nothing to learn from the other:
// blocks that only have gone are no news.
func (s Share) equal(o Share) bool {
	return s.Concurrency == o.Concurrency && s.StartRate == o.StartRate && s.TargetRPS == o.TargetRPS && s.end() == o.end()
}

// end is the number behind the last one.
func (s Share) end() int64 {
	if len(s.Blocks) == 0 {
		return 0
	}
	return s.Blocks[len(s.Blocks)-1].To
}

func fraction(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// apportion divides a number by weights, to whole numbers whose sum it is, by the method of
// largest remainders; the first of equals come first. What some cannot hold goes to the others,
// as far as they can.
func apportion(n int, members []candidate) []int {
	parts := make([]int, len(members))
	var open []int // of the members, those with room
	for i, m := range members {
		if m.Weight > 0 {
			open = append(open, i)
		}
	}
	for len(open) > 0 {
		divided := largestRemainders(n, members, open)
		rest := open[:0:0]
		for j, i := range open {
			if most := members[i].Most; most > 0 && divided[j] > most {
				parts[i] = most
				n -= most
				continue
			}
			rest = append(rest, i)
		}
		if len(rest) == len(open) {
			for j, i := range open {
				parts[i] = divided[j]
			}
			return parts
		}
		open = rest
	}
	return parts
}

// largestRemainders divides a number among some of the members by their weights.
func largestRemainders(n int, members []candidate, among []int) []int {
	sum := 0.0
	for _, i := range among {
		sum += members[i].Weight
	}
	parts := make([]int, len(among))
	rest := n
	order := make([]int, len(among))
	remainder := make([]float64, len(among))
	for j, i := range among {
		exact := float64(n) * members[i].Weight / sum
		parts[j] = int(exact)
		remainder[j], order[j] = exact-float64(parts[j]), j
		rest -= parts[j]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainder[b], remainder[a]) })
	for _, j := range order[:rest] {
		parts[j]++
	}
	return parts
}
