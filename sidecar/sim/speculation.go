package sim

// Speculation is one kind of speculative decoding. In every iteration, a draft of some tokens per sequence is
// verified. The tokens before the first rejected one are kept, plus one more from the target model.
type Speculation struct {
	DraftTokens int       `yaml:"draft_tokens"`
	Acceptance  []float64 `yaml:"acceptance"` // probability by drafted token, if all tokens before it were accepted
	StepScale   float64   `yaml:"step_scale"` // factor on [StepCost] without its prefill parts
	Calibrated  bool      `yaml:"calibrated"`
	Basis       string    `yaml:"basis"` // source of the numbers
}

// TokensPerStep returns the mean number of tokens that a sequence gets from one iteration, 1 + a₁ + a₁a₂ + …: 3.14
// for a draft of three tokens with the acceptances 0.86, 0.83 and 0.80.
func (s Speculation) TokensPerStep() float64 {
	tokens := 1.0
	for _, p := range s.thresholds() {
		tokens += p
	}
	return tokens
}

// AcceptanceRate returns the mean share of the drafted tokens that are accepted, 0 without a draft.
func (s Speculation) AcceptanceRate() float64 {
	if s.DraftTokens == 0 {
		return 0
	}
	return (s.TokensPerStep() - 1) / float64(s.DraftTokens)
}

// thresholds returns the probabilities that at least 1, 2, … drafted tokens are accepted: the cumulative products of
// the acceptances.
func (s Speculation) thresholds() []float64 {
	out := make([]float64, len(s.Acceptance))
	product := 1.0
	for i, p := range s.Acceptance {
		product *= p
		out[i] = product
	}
	return out
}

// accepted returns the number of accepted tokens for a random number from [0, 1): the number of thresholds above it,
// which are in descending order. The loop counts without a branch, because no processor could predict it.
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
