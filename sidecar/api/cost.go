package api

import "time"

// Cost is what the output of a cluster takes, and what it yields on a GPU and for a user. Absent values are not known.
// No value comes from a data sheet.
type Cost struct {
	GPUs *float64 `json:"gpus,omitempty"` // GPUs of all workers
	// power draw of the workers' GPUs together, mean over time
	GPUPowerWatts *float64 `json:"gpu_power_watts,omitempty"`
	// energy of the GPUs per million output tokens
	JoulesPerMillionTokens *float64 `json:"joules_per_million_tokens,omitempty"`
	// energy of the GPUs per turn within every SLO
	JoulesPerGoodTurn *float64 `json:"joules_per_good_turn,omitempty"`
	// price of the GPUs per million output tokens, by `deployment.gpu_hour`
	DollarsPerMillionTokens *float64 `json:"dollars_per_million_tokens,omitempty"`
	// price of the GPUs per turn within every SLO, by `deployment.gpu_hour`
	DollarsPerGoodTurn *float64 `json:"dollars_per_good_turn,omitempty"`
	TokensPerGPU       *float64 `json:"tokens_per_second_per_gpu,omitempty"` // output tokens per second / GPUs
	// 1 / median TPOT: what a user sees while an answer is written
	TokensPerUser  *float64 `json:"tokens_per_second_per_user,omitempty"`
	PowerSimulated bool     `json:"power_simulated,omitempty"` // the power is that of a simulated GPU
}

// CostBasis is what costs are derived from. A nil or zero value is not known.
type CostBasis struct {
	GPUs      float64
	GPUHour   float64  // price of an hour of one GPU, in dollars
	Watts     *float64 // of all GPUs together
	Tokens    *float64 // output tokens per second
	GoodTurns *float64 // turns within every SLO per second
	TPOT      *float64 // median, in seconds
	Simulated bool     // Watts are those of simulated GPUs
}

// Cost derives the costs. A cost per token or turn is not known where there is none of these. Tokens per second and
// user are the reciprocal of the median TPOT, as in the pictures of InferenceMAX, which calls them interactivity.
func (b CostBasis) Cost() Cost {
	const million, hour = 1e6, 3600
	over := func(a, b *float64, factor float64) *float64 {
		if a == nil || b == nil || !(*b > 0) {
			return nil
		}
		return new(*a / *b * factor)
	}
	known := func(v float64) *float64 {
		if !(v > 0) {
			return nil
		}
		return &v
	}
	price := known(b.GPUs * b.GPUHour / hour)
	return Cost{
		GPUs: known(b.GPUs), GPUPowerWatts: b.Watts,
		JoulesPerMillionTokens:  over(b.Watts, b.Tokens, million),
		JoulesPerGoodTurn:       over(b.Watts, b.GoodTurns, 1),
		DollarsPerMillionTokens: over(price, b.Tokens, million),
		DollarsPerGoodTurn:      over(price, b.GoodTurns, 1),
		TokensPerGPU:            over(b.Tokens, known(b.GPUs), 1),
		TokensPerUser:           over(new(1.), b.TPOT, 1),
		PowerSimulated:          b.Simulated && b.Watts != nil,
	}
}

// GPUReading is what a reading reports of the energy of a worker's GPU. A nil value is not reported.
type GPUReading struct {
	ID        string   // of the GPU
	Watts     *float64 // power draw
	Joules    *float64 // counter since the driver was loaded
	Divided   bool     // the GPU is in MIG mode, so that neither is known of the worker's part
	Simulated bool
}

// EnergyTotals is the energy of the workers' GPUs since they were first read.
type EnergyTotals struct {
	Joules, Seconds float64
	Breaks          int  // number of times at which the energy of some GPU became unknown
	GPUs            int  // at the latest reading; 0: some are in MIG mode, so that the number is not known
	Simulated       bool // some GPU is simulated
}

// Since returns the mean power since earlier totals, in watts; nil where the energy of any GPU in that time is not
// known.
func (t *EnergyTotals) Since(before *EnergyTotals) *float64 {
	if t == nil || before == nil || t.Breaks > before.Breaks || !(t.Seconds > before.Seconds) {
		return nil
	}
	return new((t.Joules - before.Joules) / (t.Seconds - before.Seconds))
}

// ServedTotals is what a lane received by a time since its start.
type ServedTotals struct {
	At        time.Time
	Tokens    int64 // output tokens, as they arrived
	GoodTurns int64 // turns within every SLO
}

// CostBasis returns what costs are derived from since earlier totals, without TPOT. The GPUs are those that are read,
// or else those of the deployment.
func (t EngineTotals) CostBasis(before EngineTotals, d Deployment) CostBasis {
	b := CostBasis{GPUs: float64(d.GPUs()), GPUHour: d.GPUHour, Watts: t.Energy.Since(before.Energy)}
	b.Simulated = b.Watts != nil && t.Energy.Simulated
	if t.Energy != nil && t.Energy.GPUs > 0 {
		b.GPUs = float64(t.Energy.GPUs)
		if before.Energy != nil && before.Energy.GPUs != t.Energy.GPUs {
			b.GPUs = 0 // it has changed
		}
	}
	if t.Served == nil || before.Served == nil {
		return b
	}
	seconds := t.Served.At.Sub(before.Served.At).Seconds()
	tokens, good := t.Served.Tokens-before.Served.Tokens, t.Served.GoodTurns-before.Served.GoodTurns
	if seconds > 0 && tokens >= 0 && good >= 0 { // less after a new start
		b.Tokens, b.GoodTurns = new(float64(tokens)/seconds), new(float64(good)/seconds)
	}
	return b
}

// GPUs returns the number of GPUs of all workers, 0 where it is not known.
func (d Deployment) GPUs() int { return d.Workers * d.TensorParallel }
