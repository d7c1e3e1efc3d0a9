package cluster

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
)

// locate sets the labels instance and pod of a series to the worker that it describes. The page of a router, of a
// federating Prometheus or of a gateway has the series of several workers. It names them in labels of its own, which a
// Prometheus that scrapes the page renames. Figures of a GPU keep their labels; see [gpus].
func (s *Sample) locate() {
	if slices.Contains(gpuMetrics, s.Name) {
		return
	}
	place := s.Labels["exported_instance"]
	if engineOf(s.Name) != "" {
		place = cmp.Or(place, s.Labels["server"])
	}
	if _, rest, found := strings.Cut(string(place), "://"); found {
		rest, _, _ = strings.Cut(rest, "/")
		place = model.LabelValue(rest)
	}
	pod := s.Labels["exported_pod"]
	if (place == "" || place == s.Labels[model.InstanceLabel]) && pod == "" {
		return
	}
	labels := s.Labels.Clone()
	for _, name := range []model.LabelName{"exported_instance", "server", "exported_pod"} {
		delete(labels, name)
	}
	labels[model.InstanceLabel] = cmp.Or(place, labels[model.InstanceLabel])
	if pod != "" {
		labels["pod"] = pod
	}
	s.Labels, s.relayed = labels, true
}

// place identifies the worker that a sample describes, where it has no id.
type place struct{ instance, pod model.LabelValue }

func placeOf(s Sample) place { return place{s.Labels[model.InstanceLabel], s.Labels["pod"]} }

// leaveOutRelayed removes what a page relays of workers whose own pages are read, too. Where no address is on both, the
// page may have other addresses of the same workers: it is left out if as many own pages exist.
func leaveOutRelayed(samples []Sample) []Sample {
	own, relayed := map[model.LabelValue]bool{}, map[place]bool{}
	for _, s := range samples {
		switch {
		case engineOf(s.Name) == "":
		case s.relayed:
			relayed[placeOf(s)] = true
		default:
			own[s.Labels[model.InstanceLabel]] = true
		}
	}
	all := len(own) >= len(relayed)
	for p := range relayed {
		all = all && !own[p.instance]
	}
	return slices.DeleteFunc(samples, func(s Sample) bool {
		return s.relayed && engineOf(s.Name) != "" && (all || own[s.Labels[model.InstanceLabel]])
	})
}

// ofModel removes the samples of other models than the one that the turns ask for. Where no sample names that model,
// the metrics may have another name for it, so that all of them stay.
func ofModel(samples []Sample, name string) []Sample {
	if name == "" {
		return samples
	}
	known := map[string]bool{} // writers that name the model
	for _, s := range samples {
		if writer, of := modelOf(s); strings.EqualFold(of, name) {
			known[writer] = true
		}
	}
	ours, others := map[string]bool{}, map[string]bool{} // pages and components
	other := func(s Sample) bool {
		writer, of := modelOf(s)
		return of != "" && known[writer] && !strings.EqualFold(of, name)
	}
	owners := func(s Sample) (all []string) {
		if isWorkerSample(s) {
			all = append(all, "page "+string(placeOf(s).instance)+" "+string(placeOf(s).pod))
		}
		if c := s.Labels["dynamo_component"]; c != "" {
			all = append(all, "component "+string(s.Labels["dynamo_namespace"]+" "+c))
		}
		return all
	}
	for _, s := range samples {
		set := others
		if _, of := modelOf(s); !other(s) {
			if of == "" {
				continue
			}
			set = ours
		}
		for _, o := range owners(s) {
			set[o] = true
		}
	}
	if len(others) == 0 && len(known) == 0 {
		return samples
	}
	return slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool {
		return other(s) || slices.ContainsFunc(owners(s), func(o string) bool { return others[o] && !ours[o] })
	})
}

// modelOf returns the model that a sample names, and what wrote it: a frontend and an engine may name one model
// differently.
func modelOf(s Sample) (writer, name string) {
	writer, _, _ = strings.Cut(s.Name, "_")
	switch {
	case isFrontends(s.Name):
		writer = "frontend"
	case engineOf(s.Name) != "":
		writer = "engine"
	}
	return writer, string(cmp.Or(s.Labels["model_name"], s.Labels["model"]))
}
