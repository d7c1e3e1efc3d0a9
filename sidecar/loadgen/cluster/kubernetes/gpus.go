package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// gpus is a number of GPUs.
type gpus struct {
	kind    string // a resource such as nvidia.com/gpu, or the driver of a device class; "" for none or several
	count   int64
	unknown string // why the number is unknown; "" where it is known
}

func (g gpus) plus(more gpus) gpus {
	switch {
	case g.count == 0:
		g.kind = cmp.Or(g.kind, more.kind)
	case more.count > 0 && more.kind != g.kind:
		g.kind = ""
	}
	g.count += more.count
	g.unknown = cmp.Or(g.unknown, more.unknown)
	return g
}

// migClass is the device class of the instances of a GPU in MIG mode. They have the driver of whole GPUs.
const migClass = "mig.nvidia.com"

// gpuDrivers are the drivers that allocate GPUs dynamically. Their device classes have the same names.
var gpuDrivers = []string{"gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com"}

// classResource is the prefix of the resource that stands for one device of a class.
const classResource = "deviceclass.resource.kubernetes.io/"

// isGPU reports whether a resource is a GPU, or a part of one that pods use as a GPU.
func isGPU(name corev1.ResourceName) bool {
	class, ofClass := strings.CutPrefix(string(name), classResource)
	return slices.Contains([]corev1.ResourceName{
		"nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi",
	}, name) || strings.HasPrefix(string(name), "nvidia.com/mig-") || ofClass && isGPUClass(class)
}

func isGPUClass(class string) bool { return class == migClass || slices.Contains(gpuDrivers, class) }

// gpusIn sums the GPUs that the containers of a pod request as resources.
func gpusIn(p corev1.PodSpec) (sum gpus) {
	for _, c := range p.Containers {
		taken := c.Resources.Requests.DeepCopy()
		if taken == nil {
			taken = corev1.ResourceList{}
		}
		for name, q := range c.Resources.Limits {
			taken[name] = q
		}
		for name, q := range taken {
			if isGPU(name) {
				sum = sum.plus(gpus{kind: strings.TrimPrefix(string(name), classResource), count: q.Value()})
			}
		}
	}
	return sum
}

// devices holds the GPUs of claims by name: of templates, from which each pod gets its own claim, and of claims that
// pods share.
type devices struct{ templates, claims map[string]gpus }

// ofPod sums the GPUs of one pod, without shared claims.
func (d devices) ofPod(p corev1.PodSpec) gpus {
	sum := gpusIn(p)
	for _, c := range p.ResourceClaims {
		if c.ResourceClaimTemplateName != nil {
			sum = sum.plus(d.templates[*c.ResourceClaimTemplateName])
		}
	}
	return sum
}

// shared returns the GPUs that a pod shares with others, by the name of the claim.
func (d devices) shared(p corev1.PodSpec) map[string]gpus {
	all := map[string]gpus{}
	for _, c := range p.ResourceClaims {
		if c.ResourceClaimName != nil {
			all[*c.ResourceClaimName] = d.claims[*c.ResourceClaimName]
		}
	}
	return all
}

// deviceRequest is one request of a claim, in any version of the API.
type deviceRequest struct {
	DeviceClassName string `json:"deviceClassName"`
	AllocationMode  string `json:"allocationMode"`
	Count           int64  `json:"count"`
	AdminAccess     bool   `json:"adminAccess"` // true for a claim that monitors devices of other pods
}

// claimSpec lists the requests of a claim.
type claimSpec struct {
	Devices struct {
		Requests []struct {
			deviceRequest                  // fields of the API up to v1beta1
			Exactly        *deviceRequest  `json:"exactly"`
			FirstAvailable []deviceRequest `json:"firstAvailable"`
		} `json:"requests"`
	} `json:"devices"`
}

// readClaims reads the claims of a graph.
func (d *Driver) readClaims(ctx context.Context, g *graph) devices {
	all := devices{map[string]gpus{}, map[string]gpus{}}
	for _, c := range g.Spec.Components {
		for _, claim := range c.PodTemplate.Spec.ResourceClaims {
			switch {
			case claim.ResourceClaimTemplateName != nil:
				d.readClaim(ctx, g.Namespace, "resourceclaimtemplates", *claim.ResourceClaimTemplateName, all.templates)
			case claim.ResourceClaimName != nil:
				d.readClaim(ctx, g.Namespace, "resourceclaims", *claim.ResourceClaimName, all.claims)
			}
		}
	}
	return all
}

// readClaim reads one claim or template into known.
func (d *Driver) readClaim(ctx context.Context, namespace, resource, name string, known map[string]gpus) {
	if _, done := known[name]; done {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	u, err := d.allocation(resource, func(r dynamic.NamespaceableResourceInterface) (*unstructured.Unstructured, error) {
		return r.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		known[name] = gpus{unknown: fmt.Sprintf("%s %s/%s: %v", strings.TrimSuffix(resource, "s"), namespace, name, err)}
		return
	}
	var object struct {
		Spec struct {
			claimSpec
			Spec claimSpec `json:"spec"` // set for a template
		} `json:"spec"`
	}
	if err := convert(u, &object); err != nil {
		known[name] = gpus{unknown: fmt.Sprintf("%s %s/%s: %v", strings.TrimSuffix(resource, "s"), namespace, name, err)}
		return
	}
	var sum gpus
	for _, r := range slices.Concat(object.Spec.Devices.Requests, object.Spec.Spec.Devices.Requests) {
		options := r.FirstAvailable
		if len(options) == 0 {
			options = []deviceRequest{r.deviceRequest}
		}
		if r.Exactly != nil {
			options = []deviceRequest{*r.Exactly}
		}
		each := d.gpusOf(ctx, options[0])
		for _, option := range options[1:] {
			if other := d.gpusOf(ctx, option); other.count != each.count {
				each = gpus{unknown: fmt.Sprintf("%s %s leaves the number to the scheduler", strings.TrimSuffix(resource, "s"),
					name)}
			}
		}
		sum = sum.plus(each)
	}
	known[name] = sum
}

// gpusOf returns the GPUs of one request.
func (d *Driver) gpusOf(ctx context.Context, r deviceRequest) gpus {
	kind, err := d.driverOf(ctx, r.DeviceClassName)
	switch {
	case err != nil:
		return gpus{unknown: fmt.Sprintf("device class %s: %v", r.DeviceClassName, err)}
	case kind == "" || r.AdminAccess:
		return gpus{}
	case r.AllocationMode != "" && r.AllocationMode != "ExactCount":
		return gpus{kind: kind, unknown: fmt.Sprintf("a request of device class %s takes %s of the devices",
			r.DeviceClassName, strings.ToLower(r.AllocationMode))}
	}
	return gpus{kind: kind, count: max(1, r.Count)}
}

// driverOf returns the driver of the GPUs that a device class selects, "" where it selects other devices.
func (d *Driver) driverOf(ctx context.Context, class string) (string, error) {
	if isGPUClass(class) {
		return class, nil
	}
	u, err := d.allocation("deviceclasses", func(r dynamic.NamespaceableResourceInterface) (*unstructured.Unstructured,
		error,
	) {
		return r.Get(ctx, class, metav1.GetOptions{})
	})
	if err != nil {
		return "", err
	}
	text, err := u.MarshalJSON()
	for _, driver := range gpuDrivers {
		if strings.Contains(string(text), driver) {
			return driver, nil
		}
	}
	return "", err
}

// allocationVersions are the versions of the API of dynamic resource allocation, the latest first.
var allocationVersions = []string{"v1", "v1beta2", "v1beta1"}

// allocation calls the API of dynamic resource allocation in the latest version that the cluster serves.
func (d *Driver) allocation(
	resource string, call func(dynamic.NamespaceableResourceInterface) (*unstructured.Unstructured, error),
) (u *unstructured.Unstructured, err error) {
	for _, version := range allocationVersions {
		u, err = call(d.client.Resource(schema.GroupVersionResource{
			Group: "resource.k8s.io", Version: version,
			Resource: resource,
		}))
		if !apierrors.IsNotFound(err) {
			return u, err
		}
	}
	return nil, err
}

// FreeGPUs counts the free GPUs of a kind, "" for any, in multiples of each per node; each is at least 1.
func (d *Driver) FreeGPUs(ctx context.Context, kind string, each int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	nodeList, err := d.client.Resource(nodes).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	present, err := ReadAll[corev1.Node](nodeList)
	if err != nil {
		return 0, err
	}
	podList, err := d.client.Resource(pods).List(ctx,
		metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"})
	if err != nil {
		return 0, err
	}
	running, err := ReadAll[corev1.Pod](podList)
	if err != nil {
		return 0, err
	}
	free := map[string]int64{}
	for _, n := range present {
		if n.Spec.Unschedulable {
			continue
		}
		free[n.Name] = 0
		for name, q := range n.Status.Allocatable {
			if isGPU(name) && (kind == "" || kind == string(name)) {
				free[n.Name] += q.Value()
			}
		}
	}
	if !strings.Contains(kind, "/") {
		if err := d.addFreeDevices(ctx, kind, free); err != nil && (kind != "" || !apierrors.IsNotFound(err)) {
			return 0, err
		}
	}
	for _, p := range running {
		if taken := gpusIn(p.Spec); kind == "" || taken.kind == kind {
			free[p.Spec.NodeName] -= taken.count
		}
	}
	sum := int64(0)
	for _, n := range present {
		if n := free[n.Name]; n > 0 {
			sum += n / each * each
		}
	}
	return sum, nil
}

// resourceSlice lists a part of a driver's devices on a node.
type resourceSlice struct {
	Spec struct {
		Driver   string `json:"driver"`
		NodeName string `json:"nodeName"`
		Pool     struct {
			Name       string `json:"name"`
			Generation int64  `json:"generation"`
		} `json:"pool"`
		Devices []device `json:"devices"`
	} `json:"spec"`
}

type device struct {
	Name       string     `json:"name"`
	Attributes attributes `json:"attributes"`
	Basic      struct {
		Attributes attributes `json:"attributes"`
	} `json:"basic"` // field of the API up to v1beta1
}

type attributes map[string]struct {
	String string `json:"string"`
}

// kind returns the kind of a driver's device.
func (d device) kind(driver string) string {
	if cmp.Or(d.Attributes["type"].String, d.Basic.Attributes["type"].String) == "mig" {
		return migClass
	}
	return driver
}

// allocatedClaim lists the devices that a claim holds.
type allocatedClaim struct {
	Status struct {
		Allocation struct {
			Devices struct {
				Results []deviceID `json:"results"`
			} `json:"devices"`
		} `json:"allocation"`
	} `json:"status"`
}

// deviceID identifies a device.
type deviceID struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Device string `json:"device"`
}

// addFreeDevices adds the unclaimed devices of a kind, "" for any GPU, to the nodes in free.
func (d *Driver) addFreeDevices(ctx context.Context, kind string, free map[string]int64) error {
	slices, err := readDevices[resourceSlice](ctx, d, "resourceslices")
	if err != nil {
		return err
	}
	claims, err := readDevices[allocatedClaim](ctx, d, "resourceclaims")
	if err != nil {
		return err
	}
	taken := map[deviceID]bool{}
	for _, c := range claims {
		for _, id := range c.Status.Allocation.Devices.Results {
			taken[id] = true
		}
	}
	latest := map[deviceID]int64{}
	for _, s := range slices {
		pool := deviceID{Driver: s.Spec.Driver, Pool: s.Spec.Pool.Name}
		latest[pool] = max(latest[pool], s.Spec.Pool.Generation)
	}
	for _, s := range slices {
		pool := deviceID{Driver: s.Spec.Driver, Pool: s.Spec.Pool.Name}
		_, schedulable := free[s.Spec.NodeName]
		if !schedulable || s.Spec.Pool.Generation < latest[pool] || !isGPUClass(s.Spec.Driver) {
			continue
		}
		for _, each := range s.Spec.Devices {
			pool.Device = each.Name
			if !taken[pool] && (kind == "" || kind == each.kind(s.Spec.Driver)) {
				free[s.Spec.NodeName]++
			}
		}
	}
	return nil
}

func readDevices[T any](ctx context.Context, d *Driver, resource string) (all []T, err error) {
	_, err = d.allocation(resource, func(r dynamic.NamespaceableResourceInterface) (*unstructured.Unstructured, error) {
		list, err := r.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		all = make([]T, len(list.Items))
		for i := range list.Items {
			if err := convert(&list.Items[i], &all[i]); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return all, err
}
