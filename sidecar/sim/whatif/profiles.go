package whatif

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/study"
)

// Limits of the folder of profiles.
const (
	maxFiles = 50
	maxFile  = 64 << 10 // bytes
)

// builtIn is the source of the built-in profiles.
const builtIn = "built in"

// entry is a profile, or the error of its file.
type entry struct {
	name, source string
	profile      sim.Profile
	err          error
}

// profiles returns the built-in profiles and then those of the folder, including files that
// cannot be read. The error is that of the folder.
func (d *Desk) profiles() ([]entry, error) {
	var all []entry
	for _, name := range sim.ProfileNames() {
		p, err := sim.LoadProfile(name)
		all = append(all, entry{name, builtIn, p, err})
	}
	files, err := profileFiles(d.opts.Profiles)
	for _, file := range files {
		e := entry{name: strings.TrimSuffix(file, filepath.Ext(file)), source: file}
		if e.profile, e.err = readProfile(filepath.Join(d.opts.Profiles, file)); e.err == nil {
			e.name = e.profile.Name
		}
		if i := slices.IndexFunc(all, func(other entry) bool { return other.name == e.name }); i >= 0 && e.err == nil {
			e.err = api.Refuse("name", e.name, "a name that no other profile has; this one is "+all[i].source)
		}
		all = append(all, e)
	}
	return all, err
}

// profileFiles returns the names of the files, none where the folder does not exist.
func profileFiles(dir string) (names []string, err error) {
	if dir == "" {
		return nil, nil
	}
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		if ext := filepath.Ext(f.Name()); !f.IsDir() && (ext == ".yaml" || ext == ".yml") {
			names = append(names, f.Name())
		}
	}
	if len(names) > maxFiles {
		return names[:maxFiles], fmt.Errorf("%s holds %d profiles; only the first %d are offered", dir, len(names), maxFiles)
	}
	return names, err
}

func readProfile(path string) (p sim.Profile, err error) {
	f, err := os.Open(path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return p, err
	}
	if len(text) > maxFile {
		return p, fmt.Errorf("the file is larger than %d bytes", maxFile)
	}
	return sim.ParseProfile(text)
}

// profile finds a profile by its name; nil means the recorded deployment. The error is an
// [api.FieldError].
func (d *Desk) profile(name *string) (sim.Profile, error) {
	if name == nil {
		return sim.H200(), nil
	}
	all, _ := d.profiles() // Simulations reports the error of the folder
	var names []string
	for _, e := range all {
		switch {
		case e.err == nil && e.name == *name:
			return e.profile, nil
		case e.name == *name && e.source != builtIn:
			return sim.Profile{}, api.Refuse("profile", *name, fmt.Sprintf("a readable profile; %s: %v", e.source, e.err))
		case e.err == nil:
			names = append(names, e.name)
		}
	}
	return sim.Profile{}, api.Refuse("profile", fmt.Sprintf("%.80q", *name), "one of "+strings.Join(names, ", "))
}

// Simulations returns what can be simulated, and the kept simulations.
func (d *Desk) Simulations() api.SimulationList {
	l := api.SimulationList{
		Available: d.opts.CPUs > 0, Limits: limits(), MaxLevels: api.MaxSimulationLevels, MaxWork: api.MaxSimulationWork,
		Trace: d.opts.Trace,
	}
	entries, err := d.profiles()
	if err != nil {
		l.Message = err.Error()
	}
	if !l.Available {
		l.Message = disabled
	}
	for _, e := range entries {
		l.Profiles = append(l.Profiles, e.api())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range slices.Backward(d.all) {
		l.Simulations = append(l.Simulations, d.summary(s))
	}
	return l
}

// limits returns the limits of the API, or those of the simulation where they are narrower.
func limits() map[string]api.SimulationLimit {
	all := map[string]api.SimulationLimit{}
	for path, l := range api.SimulationLimits {
		own := study.Limits[path]
		all[path] = api.SimulationLimit{Min: max(l.Min, own.Min), Max: min(l.Max, own.Max), Above: l.Above}
	}
	return all
}

func (e entry) api() api.SimulationProfile {
	p := e.profile
	if e.err != nil {
		return api.SimulationProfile{Name: e.name, Title: e.name, Source: e.source, Error: e.err.Error()}
	}
	out := api.SimulationProfile{
		Name: p.Name, Title: title(p), Source: e.source, Calibrated: p.Calibrated, Basis: strings.TrimSpace(p.Basis),
		Baseline: p.Baseline,
		Deployment: api.Deployment{
			Model: p.Model, GPU: p.GPU, Workers: p.Workers, TensorParallel: p.TensorParallel,
			Speculation: api.SpeculationNotRecorded,
			BlockSize:   p.KV.BlockTokens, MaxBatchSize: p.MaxSequences, MaxNumTokens: p.MaxBatchedTokens,
		},
		Defaults: api.SimulationRequest(study.Request{}.Complete(p)),
	}
	for _, kind := range slices.Sorted(maps.Keys(p.Speculation)) {
		speculation := p.Speculation[kind]
		s := api.SimulationSpeculation{
			Speculation: kind, Calibrated: p.CalibratedFor(kind), Basis: strings.TrimSpace(speculation.Basis),
			TokensPerStep: speculation.TokensPerStep(),
		}
		if speculation.DraftTokens > 0 {
			s.AcceptanceRate = new(speculation.AcceptanceRate())
		}
		out.Speculations = append(out.Speculations, s)
	}
	for _, preset := range study.Presets(p) {
		out.Presets = append(out.Presets, api.SimulationPreset{
			Name: preset.Name, Title: preset.Title, Description: descriptions[preset.Name],
			Request: api.SimulationRequest(preset.Request),
		})
	}
	return out
}

// descriptions explain the presets.
var descriptions = map[string]string{
	"as-recorded":    "The deployment and the workload of the recorded results.",
	"twice-the-gpus": "Twice as many workers for the same conversations.",
	"own-documents": "No two conversations begin with the same text: a cache can only hold a " +
		"conversation's own earlier turns.",
	"batch-128": "A worker serves up to 128 sequences in one iteration.",
}

// title describes the deployment: the number and kind of GPUs, and the GPUs of a worker.
func title(p sim.Profile) string {
	each := "1 GPU"
	if p.TensorParallel > 1 {
		each = fmt.Sprintf("%d GPUs", p.TensorParallel)
	}
	return fmt.Sprintf("%d × %s, %s per worker", p.Workers*p.TensorParallel, p.GPU, each)
}
