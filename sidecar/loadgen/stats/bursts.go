package stats

// burstsFrom is the share of answers in bursts from which streams count as held back, and fewestBursts their number. A
// client that did not run for a moment reads a few answers in bursts, too, whatever the server did.
const (
	burstsFrom   = .05
	fewestBursts = 3
)

// HeldBack reports whether so many answers in bursts, among all that ended well, show that the server or a proxy holds
// its streams back. TPOT and ITL of all these answers are unknown then: those whose bursts were not recognized are no
// sample of the others.
func HeldBack(inBursts, answers int) bool {
	return inBursts >= fewestBursts && float64(inBursts) >= burstsFrom*float64(answers)
}
