package sim

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"kvbooth/sidecar/api"
)

//go:embed profiles/*.yaml
var profileFiles embed.FS

// ProfileNames returns the names of the built-in profiles, sorted.
func ProfileNames() []string {
	entries, err := profileFiles.ReadDir("profiles")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".yaml"))
	}
	return names
}

// LoadProfile returns a built-in profile. An unknown name gives an *[api.FieldError] with the field "profile".
func LoadProfile(name string) (Profile, error) {
	names := ProfileNames()
	if !slices.Contains(names, name) {
		return Profile{}, api.Refuse("profile", name, strings.Join(names, ", "))
	}
	data, err := profileFiles.ReadFile("profiles/" + name + ".yaml")
	if err != nil {
		return Profile{}, err
	}
	return ParseProfile(data)
}

// OpenProfile returns the profile that a command line names: a built-in one, or one from a file if the argument has a
// path separator or the suffix .yaml. A file that cannot be read gives an *[api.FieldError] with the field "profile".
// An invalid file gives the error of [ParseProfile], with the file's name in front of the field. OpenProfile can read
// any file of the user; names from the network go to [LoadProfile].
func OpenProfile(nameOrFile string) (Profile, error) {
	isFile := strings.ContainsRune(nameOrFile, os.PathSeparator) || strings.ContainsRune(nameOrFile, '/') ||
		filepath.Ext(nameOrFile) == ".yaml"
	if !isFile {
		return LoadProfile(nameOrFile)
	}
	data, err := os.ReadFile(nameOrFile)
	if err != nil {
		allowed := fmt.Sprintf("a readable file (%v), or one of %s", err, strings.Join(ProfileNames(), ", "))
		return Profile{}, api.Refuse("profile", nameOrFile, allowed)
	}
	p, err := ParseProfile(data)
	var field *api.FieldError
	if errors.As(err, &field) {
		err = api.Refuse(nameOrFile+": "+field.Field, field.Value, field.Allowed)
	}
	return p, err
}

// ParseProfile reads a profile from YAML: one document, with the keys in the tags of [Profile]. Anything else gives an
// *[api.FieldError] with the field "profile". An invalid value gives one whose field is the value's path, such as
// "kv.blocks".
func ParseProfile(data []byte) (Profile, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	var p Profile
	err := decoder.Decode(&p)
	if err == nil && !errors.Is(decoder.Decode(new(yaml.Node)), io.EOF) {
		err = errors.New("unexpected data after the first document")
	}
	if err != nil {
		return Profile{}, api.Refuse("profile", "this file", fmt.Sprintf("a profile in YAML: %v", err))
	}
	if err := p.Validate(); err != nil {
		return Profile{}, err
	}
	return p, nil
}

// YAML returns the profile in the form that [ParseProfile] reads.
func (p Profile) YAML() ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(p); err != nil {
		return nil, err
	}
	err := e.Close()
	return out.Bytes(), err
}

// Limits that are wide enough for every real profile.
const (
	maxWorkers    = 1024
	maxDraft      = 16
	maxJitter     = .1 // a larger one could give steps of negative length
	maxScale      = 10
	maxTokens     = 1 << 30
	maxSequences  = 4096
	maxMemory     = 65_536 // GiB
	maxBandwidth  = 1e6    // GB/s
	maxTFLOPS     = 1e6
	maxParameters = 1e5 // billions
)

var profileName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// Validate returns an *[api.FieldError] for the first field that is missing or out of range, or nil.
func (p Profile) Validate() error {
	if !profileName.MatchString(p.Name) {
		return api.Refuse("name", p.Name, "up to 64 of a–z, 0–9, '.', '_' and '-'")
	}
	for _, text := range []struct{ field, value string }{
		{"basis", p.Basis}, {"model", p.Model}, {"precision", p.Precision}, {"gpu", p.GPU},
	} {
		if text.value == "" {
			return api.Refuse(text.field, text.value, "some text")
		}
	}
	if p.Calibrated && p.Baseline == "" {
		return api.Refuse("baseline", p.Baseline, "the recorded results that a calibrated profile was fitted to")
	}
	return cmp.Or(firstOutOfRange(p.numbers()), p.validateMemory(), p.validateFloors(), p.validateSpeculation(),
		p.validateConstants())
}

// validateMemory checks that the weights and the KV cache fit into the memory of a worker's GPUs.
func (p Profile) validateMemory() error {
	const gib = 1 << 30
	cache := float64(p.KV.Tokens()) * float64(p.KV.BytesPerToken) / gib
	least := math.Ceil(10*(p.Memory.Weights+cache)/float64(p.TensorParallel)) / 10
	return firstOutOfRange([]bound{
		{"memory.weights", p.Memory.Weights, 0, maxMemory},
		{"memory.gpu", p.Memory.GPU, least, maxMemory},
		{"memory.bandwidth", p.Memory.Bandwidth, 1, maxBandwidth},
	})
}

// bound is a number with its allowed range.
type bound struct {
	field            string
	value, low, high float64
}

// firstOutOfRange returns an *[api.FieldError] for the first number out of its range, or nil.
func firstOutOfRange(bounds []bound) error {
	for _, b := range bounds {
		if !(b.low <= b.value && b.value <= b.high) { // also refuses NaN
			return api.Refuse(b.field, decimal(b.value), decimal(b.low)+" to "+decimal(b.high))
		}
	}
	return nil
}

// decimal formats a number without an exponent.
func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// numbers returns the ranges of all numbers but those of [Profile.Constants].
func (p Profile) numbers() []bound {
	return []bound{
		{"workers", float64(p.Workers), 1, maxWorkers},
		{"tensor_parallel", float64(p.TensorParallel), 1, 16},
		{"kv.bytes_per_token", float64(p.KV.BytesPerToken), 1, maxTokens},
		{"kv.block_tokens", float64(p.KV.BlockTokens), 1, 1024},
		{"kv.blocks", float64(p.KV.Blocks), 16, maxTokens / 1024},
		{"max_sequences", float64(p.MaxSequences), 1, maxSequences},
		// A full batch must leave room to prefill.
		{"max_batched_tokens", float64(p.MaxBatchedTokens), float64(p.MaxSequences*(maxDraft+1) + 1), maxTokens},
		{"compute.tflops", p.Compute.TFLOPS, 1, maxTFLOPS},
		{"compute.parameters", p.Compute.Parameters, .001, maxParameters},
		{"compute.attention", p.Compute.Attention, 1, maxTokens},
	}
}

func (p Profile) validateFloors() error {
	for i, floor := range p.Step.Floors {
		field := fmt.Sprintf("step.floors[%d].", i)
		if err := firstOutOfRange([]bound{
			{field + "sequences.min", float64(floor.Sequences.Min), 0, maxSequences},
			{field + "sequences.max", float64(floor.Sequences.Max), float64(floor.Sequences.Min), maxSequences},
		}); err != nil {
			return err
		}
	}
	return nil
}

// speculations are the supported kinds of speculation.
var speculations = []api.Speculation{
	api.SpeculationNotRecorded, api.SpeculationOff, api.SpeculationDraft, api.SpeculationEagle3,
}

func (p Profile) validateSpeculation() error {
	if _, ok := p.Speculation[api.SpeculationNotRecorded]; !ok {
		return api.Refuse("speculation", slices.Sorted(maps.Keys(p.Speculation)), "not_recorded among them")
	}
	for _, kind := range slices.Sorted(maps.Keys(p.Speculation)) {
		if !slices.Contains(speculations, kind) {
			return api.Refuse("speculation", kind, fmt.Sprint(speculations))
		}
		if err := p.Speculation[kind].validate("speculation." + string(kind) + "."); err != nil {
			return err
		}
	}
	return nil
}

func (s Speculation) validate(field string) error {
	if s.Basis == "" {
		return api.Refuse(field+"basis", "", "some text")
	}
	if len(s.Acceptance) != s.DraftTokens {
		allowed := fmt.Sprintf("one number for each of the %d drafted tokens", s.DraftTokens)
		return api.Refuse(field+"acceptance", s.Acceptance, allowed)
	}
	bounds := []bound{
		{field + "draft_tokens", float64(s.DraftTokens), 0, maxDraft},
		{field + "step_scale", s.StepScale, .01, maxScale},
	}
	for i, p := range s.Acceptance {
		bounds = append(bounds, bound{fmt.Sprintf("%sacceptance[%d]", field, i), p, 0, 1})
	}
	return firstOutOfRange(bounds)
}
