package api

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// WorkloadSetting declares a setting of the conversations. The limits of the API, the flags of the programs, the
// documents on the configuration and the fields of the forms derive from it.
type WorkloadSetting struct {
	Key     string // path in the API and in the configuration
	Label   string // name on screens
	Zero    string // meaning of 0 in a few words; "": no special meaning
	Help    string // description in sentences
	Default string // default of the configuration; "": the workload decides
	Limit   Limit
}

// WorkloadSettings lists the settings that more than one program or screen has. It must not be modified.
var WorkloadSettings = []WorkloadSetting{
	{
		Key: "concurrency", Label: "Concurrency", Default: "60", Limit: Limit{Min: 1, Max: MaxConcurrency},
		Help: "Number of concurrent conversations.",
	},
	{
		Key: "turns.min", Label: "Minimum turns", Default: "3", Limit: Limit{Min: 1, Max: MaxTurns},
		Help: "Minimum turns per conversation.",
	},
	{
		Key: "turns.max", Label: "Maximum turns", Default: "5", Limit: Limit{Min: 1, Max: MaxTurns},
		Help: "Maximum turns per conversation.",
	},
	{
		Key: "openings", Label: "Opening texts", Zero: "one each", Limit: Limit{Max: MaxOpenings},
		Help: "Number of different opening texts; 0: a new one for every conversation.",
	},
	{
		Key: "opening_tokens", Label: "Opening length", Limit: Limit{Min: 200, Max: MaxTokens, Unit: "tokens"},
		Help: "Length of the opening texts in tokens.",
	},
	{
		Key: "max_tokens", Label: "Longest answer", Default: "1024", Limit: Limit{Min: 1, Max: MaxTokens, Unit: "tokens"},
		Help: "Maximum tokens per answer.",
	},
	{
		Key: "output_tokens.mean", Label: "Answer length", Zero: "the longest", Default: "0",
		Limit: Limit{Max: MaxTokens, Unit: "tokens"},
		Help:  "Mean of the randomly drawn answer length in tokens; 0: answers are limited by max_tokens only.",
	},
	{
		Key: "output_tokens.cv", Label: "Variation of answers", Default: "0", Limit: Limit{Max: 2},
		Help: "Coefficient of variation (standard deviation / mean) of the answer length.",
	},
	{
		Key: "question_tokens.mean", Label: "Question length", Limit: Limit{Min: 1, Max: MaxTokens, Unit: "tokens"},
		Help: "Mean length of a follow-up question in tokens.",
	},
	{
		Key: "question_tokens.cv", Label: "Variation of questions", Limit: Limit{Max: 2},
		Help: "Coefficient of variation (standard deviation / mean) of the question length.",
	},
	{
		Key: "start_rate", Label: "Start rate", Default: "10",
		Limit: Limit{Max: 1000, Above: true, Unit: "conversations per second"},
		Help:  "Maximum new conversations per second.",
	},
	{
		Key: "target_rps", Label: "Request cap", Zero: "none", Default: "0",
		Limit: Limit{Max: 10_000, Unit: "requests per second"},
		Help:  "Maximum requests per second; 0: no limit.",
	},
	{
		Key: "arrivals", Label: "Arrivals", Default: string(ArrivalsPoisson),
		Help: "How conversations come at a rate: at equal intervals, at random, or in bursts (gamma; see burstiness).",
	},
	{
		Key: "burstiness", Label: "Burstiness", Default: "1", Limit: Limit{Min: .05, Max: 100},
		Help: "Of arrivals that are gamma: the shape of the distribution of gaps. Below 1, they come in bursts; " +
			"1 is poisson; above 1, they are more regular.",
	},
	{
		Key: "max_inflight", Label: "Most turns in flight", Default: "1000", Limit: Limit{Min: 1, Max: 100_000},
		Help: "At a rate: turns in flight from which arrivals, and further turns, are dropped and counted instead of sent.",
	},
	{
		Key: "think_time", Label: "Think time", Default: "0s", Limit: Limit{Max: 3600, Unit: "seconds"},
		Help: "User's pause before the next question.",
	},
}

// WorkloadSettingOf returns the setting with a path. It returns false if there is none.
func WorkloadSettingOf(path string) (WorkloadSetting, bool) {
	i := slices.IndexFunc(WorkloadSettings, func(s WorkloadSetting) bool { return s.Key == path })
	if i < 0 {
		return WorkloadSetting{}, false
	}
	return WorkloadSettings[i], true
}

// ShortUnit returns the unit of the setting as screens abbreviate it; empty: none.
func (s WorkloadSetting) ShortUnit() string {
	return strings.NewReplacer(" per second", "/s", "seconds", "s").Replace(s.Limit.Unit)
}

// Text returns a value of the setting with its unit.
func (s WorkloadSetting) Text(v float64) string {
	return strings.TrimSpace(strconv.FormatFloat(v, 'g', -1, 64) + " " + s.ShortUnit())
}

// Number returns the value of a setting with a number of its own in the shape, nil where that is not known or not of
// this kind.
func (w WorkloadShape) Number(s WorkloadSetting) *float64 {
	fields := reflect.ValueOf(w)
	for i := range fields.NumField() {
		name, _ := fieldName(fields.Type().Field(i))
		if v, ok := fields.Field(i).Interface().(*float64); ok && name == s.Key {
			return v
		}
	}
	return nil
}
