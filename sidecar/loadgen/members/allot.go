package members

import (
	"cmp"
	"math"
	"slices"

	"kvbooth/sidecar/loadgen/workload"
)

// Block is a range of conversation numbers: From is the first, To the one after the last.
type Block struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Share is a member's part of a run. The member holds the conversations of its numbers from the
// first turn to the last; none moves to another member.
type Share struct {
	Run         string  `json:"run"`
	Grant       int64   `json:"grant"` // sequence number of the share in its run; a member reports the one that it has
	Concurrency int     `json:"concurrency"`
	StartRate   float64 `json:"start_rate"`           // maximum of new conversations per second
	TargetRPS   float64 `json:"target_rps,omitempty"` // maximum of requests per second; 0: none
	Given       int64   `json:"given"`                // count of all numbers given to the member in the run
	// Blocks are the numbers that the member may begin, in this order. Numbers that it has reported
	// as begun may be left out.
	Blocks []Block `json:"blocks"`
}

// A member has sparePerPlace numbers in reserve for each conversation of its share, so that it can
// continue while no coordinator gives it more. A share below leastPlaces has the reserve of
// leastPlaces.
const (
	sparePerPlace = 8
	leastPlaces   = 16
)

// allotment divides a run among members: how many conversations each holds, and which numbers. It
// does no I/O: members and their reports are its input, shares its output. A number is given once.
// It is not safe for concurrent use.
type allotment struct {
	run     string
	next    int64 // the first number that has not been given
	grant   int64 // sequence number of the latest share
	holders map[string]*holder
}

// holder is the state of a member in the allotment.
type holder struct {
	share  Share   // the latest share
	blocks []Block // blocks with numbers that are not reported as begun
	given  int64   // count of all numbers given
	begun  int64   // count of conversations begun
	// most is the largest number of conversations that may be in progress: the reported number, or
	// that of an earlier share that the member may still follow.
	most int
}

// newAllotment returns an allotment that begins with number 0.
func newAllotment(run string) *allotment {
	return &allotment{run: run, holders: map[string]*holder{}}
}

// resume takes over a share that an earlier coordinator gave.
func (a *allotment) resume(member string, s Share) {
	a.next, a.grant = max(a.next, s.end()), max(a.grant, s.Grant)
	a.holders[member] = &holder{share: s, blocks: s.Blocks, given: s.Given, most: s.Concurrency}
}

// candidate is a member that can hold a share.
type candidate struct {
	ID       string
	Excluded bool // it gets no conversations
	Most     int  // limit of its conversations; 0: none
	Reported standing
}

// divide divides a total and returns the share of each member. A share that has changed has another
// Grant. Members that are no longer candidates are removed with their numbers. The sum of the
// conversations that may be in progress never exceeds the total, unless it already does: a member's
// share grows as those of others shrink.
func (a *allotment) divide(total workload.Settings, members []candidate) map[string]Share {
	members = slices.Clone(members)
	slices.SortFunc(members, func(x, y candidate) int { return cmp.Compare(x.ID, y.ID) })
	present := make(map[string]*holder, len(members))
	free := total.Concurrency
	for _, m := range members {
		h := a.holders[m.ID]
		if h == nil {
			h = &holder{}
		}
		h.begun = max(h.begun, m.Reported.Begun)
		if m.Reported.Grant >= h.share.Grant {
			h.most = h.share.Concurrency
		}
		h.most = max(h.most, m.Reported.Active)
		free -= h.most
		present[m.ID] = h
	}
	a.holders = present
	wanted := apportion(total.Concurrency, members)
	a.limitMoves(total, members, wanted)
	shares := make(map[string]Share, len(members))
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
			Run: a.run, Grant: h.share.Grant, Concurrency: wanted[i],
			StartRate: total.StartRate * starts[i], TargetRPS: total.TargetRPS * fraction(wanted[i], total.Concurrency),
			Given: h.given, Blocks: h.left(),
		}
		if !next.equal(h.share) {
			a.grant++
			next.Grant = a.grant
		}
		h.share = next
		shares[m.ID] = next
	}
	return shares
}

// limitMoves limits how fast shares move between members to the rate at which conversations can
// begin: each conversation that moves ends on one member, and at any time no more are missing than
// begin in a second. A surplus in total ends at once, and places without a conversation move
// freely.
func (a *allotment) limitMoves(total workload.Settings, members []candidate, wanted []int) {
	held := make([]int, len(members))
	missing := total.Concurrency
	for i, m := range members {
		held[i] = min(m.Reported.Active, a.holders[m.ID].share.Concurrency)
		missing -= held[i]
	}
	allowed := max(1, int(total.StartRate)) - missing // larger by the surplus if missing is negative
	for i := range members {
		ends := max(0, held[i]-wanted[i])
		wanted[i] += max(0, ends-max(0, allowed))
		allowed -= ends
	}
}

// A member with all its conversations gets 1/usualPart of the start rate of a member that has yet
// to begin all. A member that misses no more than the share aboutToBegin counts as complete, since
// conversations always end and begin.
const (
	usualPart    = 100
	aboutToBegin = 1. / 32
)

// startParts divides the start rate by the sizes of the shares, with preference for members that
// miss conversations. Otherwise a new member would fill its share at the rate of a small one while
// the rest of the rate is unused. The missing part counts in eighths of a share, rounded up, so
// that conversations that end and begin change nothing.
func startParts(members []candidate, quotas []int) []float64 {
	parts, sum := make([]float64, len(members)), 0.0
	for i, m := range members {
		if quotas[i] == 0 {
			continue
		}
		eighths := 0.
		if missing := fraction(quotas[i]-m.Reported.Active, quotas[i]); missing > aboutToBegin {
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

// number gives numbers. With first, members without numbers get exactly as many as they hold, so
// that the first conversations of a run have the lowest numbers. Then each member with a small
// reserve gets more.
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

// left returns the blocks with numbers that are not reported as begun.
func (h *holder) left() []Block {
	passed := h.begun - h.given
	for _, b := range h.blocks {
		passed += b.To - b.From
	}
	for len(h.blocks) > 0 && passed >= h.blocks[0].To-h.blocks[0].From {
		passed -= h.blocks[0].To - h.blocks[0].From
		h.blocks = h.blocks[1:]
	}
	return h.blocks
}

// equal reports whether a member with one share need not receive the other. Blocks that were only
// removed do not count.
func (s Share) equal(o Share) bool {
	return s.Concurrency == o.Concurrency && s.StartRate == o.StartRate && s.TargetRPS == o.TargetRPS && s.end() == o.end()
}

// end returns the number after the last one.
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

// apportion divides n equally among the members that are not excluded, into whole numbers; the
// first ones get the remainder. What exceeds a member's limit goes to the others, as far as their
// limits allow. The parts are in the order of the members: an excluded one gets 0, and what fits
// nowhere is left out.
func apportion(n int, members []candidate) []int {
	parts := make([]int, len(members))
	var open []int // of the members, those with room
	for i, m := range members {
		if !m.Excluded {
			open = append(open, i)
		}
	}
	for len(open) > 0 {
		each, remainder := n/len(open), n%len(open)
		var rest []int
		for j, i := range open {
			parts[i] = each
			if j < remainder {
				parts[i]++
			}
			if most := members[i].Most; most > 0 && parts[i] > most {
				parts[i] = most
				n -= most
				continue
			}
			rest = append(rest, i)
		}
		if len(rest) == len(open) {
			break
		}
		open = rest
	}
	return parts
}
