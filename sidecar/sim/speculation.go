package sim

// Speculation is one kind of speculative decoding: in every iteration a draft
// of some tokens is verified per sequence, and the tokens up to the first
// refusal are kept, with one more that the target model gives itself.
type Speculation struct {
	DraftTokens int       `yaml:"draft_tokens"`
	Acceptance  []float64 `yaml:"acceptance"` // of each drafted token, given that those before it were accepted
	StepScale   float64   `yaml:"step_scale"` // times [StepCost] without its prefill parts
	Calibrated  bool      `yaml:"calibrated"`
	Basis       string    `yaml:"basis"` // where the numbers come from
}

// TokensPerStep is the mean number of tokens that a sequence gets from one
// iteration, 1 + a₁ + a₁a₂ + …: 3.14 for a draft of three that are accepted with
// .86, .83 and .80.
func (s Speculation) TokensPerStep() float64 {
	tokens := 1.0
	for _, p := range s.thresholds() {
		tokens += p
	}
	return tokens
}

// AcceptanceRate is the mean share of the drafted tokens that are accepted, 0
// without a draft.
func (s Speculation) AcceptanceRate() float64 {
	if s.DraftTokens == 0 {
		return 0
	}
	return (s.TokensPerStep() - 1) / float64(s.DraftTokens)
}

// thresholds are the probabilities that at least 1, 2, … drafted tokens are
// accepted: the products of the acceptances up to there.
func (s Speculation) thresholds() []float64 {
	out := make([]float64, len(s.Acceptance))
	product := 1.0
	for i, p := range s.Acceptance {
		product *= p
		out[i] = product
	}
	return out
}

// accepted is how many drafted tokens pass for a number drawn from [0, 1): as many as
// there are thresholds above it, for they fall. It is counted without a branch, which no
// processor could predict.
func accepted(thresholds []float64, drawn float64) (n int) {
	for _, p := range thresholds {
		above := 0
		if drawn < p {
			above = 1
		}
		n += above
	}
	return n
}
