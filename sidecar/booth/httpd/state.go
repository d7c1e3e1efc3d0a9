package httpd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/google/renameio/v2/maybe"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// offers returns all modes and kinds of speculation that the cluster can switch to.
func offers(p sim.Profile) (all []api.ModeState) {
	kinds := []api.Speculation{
		api.SpeculationNotRecorded, api.SpeculationOff, api.SpeculationDraft, api.SpeculationEagle3,
	}
	for _, kind := range kinds {
		if _, ok := p.Speculation[kind]; !ok {
			continue
		}
		for _, mode := range []api.Mode{api.ModeKV, api.ModeRoundRobin, api.ModeLeastLoaded} {
			all = append(all, api.ModeState{Mode: mode, Speculation: kind})
		}
	}
	return all
}

// checkMode returns an *[api.FieldError] for a mode or speculation that the cluster does not offer.
func checkMode(m api.ModeState, p sim.Profile) error {
	all := offers(p)
	if slices.Contains(all, m) {
		return nil
	}
	if !slices.ContainsFunc(all, func(o api.ModeState) bool { return o.Mode == m.Mode }) {
		allowed := distinct(all, func(o api.ModeState) string { return string(o.Mode) })
		return api.Refuse("mode", fmt.Sprintf("%.40q", m.Mode), allowed)
	}
	allowed := distinct(all, func(o api.ModeState) string { return string(o.Speculation) })
	return api.Refuse("speculation", fmt.Sprintf("%.40q", m.Speculation), allowed)
}

// distinct lists the distinct values of a field of the offers.
func distinct(all []api.ModeState, field func(api.ModeState) string) string {
	var list string
	for i, o := range all {
		if v := field(o); slices.IndexFunc(all, func(o api.ModeState) bool { return field(o) == v }) == i {
			if list != "" {
				list += ", "
			}
			list += v
		}
	}
	return list
}

// restore reads mode and speculation from the state file, if it exists.
func (o *Options) restore() error {
	if o.StateFile == "" {
		return nil
	}
	data, err := os.ReadFile(o.StateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var m api.ModeState
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err = d.Decode(&m); err == nil {
			err = checkMode(m, o.Cluster.Profile)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot use the state file %s (delete it to start as configured): %w", o.StateFile, err)
	}
	o.Cluster.Mode, o.Cluster.Speculation = m.Mode, m.Speculation
	return nil
}

// saveMode replaces the state file atomically.
func saveMode(path string, m api.ModeState) error {
	if path == "" {
		return nil
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return maybe.WriteFile(path, append(data, '\n'), 0o600)
}
