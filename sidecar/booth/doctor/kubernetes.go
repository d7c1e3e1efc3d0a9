package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster/kubernetes"
)

var (
	pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	claims  = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	graphs  = kubernetes.Graphs
	jobs    = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

// driver is the name of the mode driver for Kubernetes.
const driver = "kubernetes"

// download selects the Job that downloads the weights to the volume.
const download = "app.kubernetes.io/component=model-download"

// cluster is the examined Kubernetes cluster.
type cluster struct {
	*exam
	all       *findings
	client    dynamic.Interface
	http      *http.Client
	host      string
	namespace string // namespace of the booth
}

// graphName identifies a DynamoGraphDeployment: by its name, otherwise by the load generator's labels, otherwise by
// the address of its frontend's service.
type graphName struct{ namespace, name, selector, target string }

func (g graphName) String() string { return g.namespace + "/" + cmp.Or(g.name, g.selector, g.target) }

func (e *exam) kubernetes(ctx context.Context, all *findings) {
	driven := e.setting("mode.driver") == driver || e.setting("twin.mode.driver") == driver
	asked := e.Kubernetes || e.Kubeconfig != "" || e.Context != "" || e.Namespace != "" ||
		len(e.Graphs) > 0 || len(e.Secrets) > 0 || e.GPUs != nil
	if !driven && !asked {
		all.skip("Kubernetes: the load generator does not switch modes there", "add --kubernetes to check it anyway")
		return
	}
	c := e.reach(ctx, all, asked)
	if c == nil {
		return
	}
	named := e.graphNames(c.namespace)
	if c.definitions(ctx, len(named) > 0) {
		if len(named) == 0 {
			all.skip("graphs: none given", "set --graph to the name of the DynamoGraphDeployment")
		}
		for _, g := range named {
			c.graph(ctx, g)
		}
	}
	if e.GPUs != nil {
		c.gpus(ctx, kubernetes.New(ctx, c.client, kubernetes.Options{}), *e.GPUs, kubernetes.Needs{Each: 1})
	}
	for _, s := range e.Secrets {
		c.secret(ctx, c.namespace, s)
	}
}

// reach returns the cluster of the credentials, or nil if its API server does not answer. It then adds a finding: a
// problem if asked is true, that is, if the options require Kubernetes.
func (e *exam) reach(ctx context.Context, all *findings, asked bool) *cluster {
	file := cmp.Or(e.Kubeconfig, e.setting("mode.kubernetes.kubeconfig"))
	config, namespace, err := kubernetes.Credentials(file, cmp.Or(e.Context, e.setting("mode.kubernetes.context")),
		e.Namespace)
	if err != nil {
		report := all.skip
		if asked {
			report = all.problem
		}
		var field *api.FieldError
		if errors.As(err, &field) {
			err = errors.New(field.Allowed)
		}
		report("no credentials for Kubernetes here: "+err.Error(),
			"set --kubeconfig (and --context), or run this in the Kubernetes cluster")
		return nil
	}
	c := &cluster{exam: e, all: all, namespace: namespace}
	if err := c.connect(config); err != nil {
		all.problem("the credentials are invalid: "+err.Error(), "fix the kubeconfig")
		return nil
	}
	if !c.server(ctx) {
		return nil
	}
	return c
}

func (c *cluster) connect(config *rest.Config) (err error) {
	config.Timeout = callTimeout
	if c.client, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	if c.http, err = rest.HTTPClientFor(config); err != nil {
		return err
	}
	at, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return err
	}
	c.host = strings.TrimRight(at.String(), "/")
	return nil
}

// graphNames returns the graphs of the flags, otherwise those of the load generator's lanes.
func (e *exam) graphNames(namespace string) (all []graphName) {
	for _, g := range e.Graphs {
		ns, name, both := strings.Cut(g, "/")
		if !both {
			ns, name = cmp.Or(e.setting("mode.kubernetes.namespace"), namespace), g
		}
		all = append(all, graphName{namespace: ns, name: name})
	}
	if len(all) > 0 {
		return all
	}
	main := graphName{
		namespace: cmp.Or(e.setting("mode.kubernetes.namespace"), namespace),
		name:      e.setting("mode.kubernetes.name"), selector: e.setting("mode.kubernetes.selector"),
		target: e.setting("target.url"),
	}
	if main.name != "" || e.setting("mode.driver") == driver {
		all = append(all, main)
	}
	if name := e.setting("twin.mode.kubernetes.name"); name != "" {
		ns := cmp.Or(e.setting("twin.mode.kubernetes.namespace"), main.namespace)
		all = append(all, graphName{namespace: ns, name: name})
	}
	return all
}

func (c *cluster) raw(ctx context.Context, path string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.host+path, nil)
	if err != nil {
		return answer{}, err
	}
	return ask(c.http, req)
}

// server reports whether the API server responds.
func (c *cluster) server(ctx context.Context) bool {
	a, err := c.raw(ctx, "/version")
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	switch {
	case err != nil:
		c.all.problem(fmt.Sprintf("the API server %s is unreachable: %v", c.host, err),
			"check --kubeconfig and --context: kubectl cluster-info")
		return false
	case a.code == http.StatusUnauthorized:
		c.all.problem("the API server "+c.host+" rejects our credentials", "renew them: kubectl auth whoami")
		return false
	case a.read(&version) != nil:
		c.all.skip("the version of the API server: "+a.describe(), "")
	default:
		c.all.ok(fmt.Sprintf("the API server %s responds, version %s", c.host, version.GitVersion))
	}
	a.date(c.all)
	return true
}

// definitions checks which resources the cluster has, and returns whether graphs can be examined.
func (c *cluster) definitions(ctx context.Context, needed bool) bool {
	versions, err := c.versions(ctx, graphs.Group)
	report := c.all.problem
	if !needed {
		report = c.all.warn
	}
	served := false
	switch {
	case err != nil:
		c.all.skip("which versions of DynamoGraphDeployment are served: "+err.Error(), "")
		served = true
	case len(versions) == 0:
		report("the Kubernetes cluster has no DynamoGraphDeployments ("+graphs.GroupResource().String()+")",
			"install Dynamo's operator with its CRDs")
	default:
		var as string
		if as, err = c.serves(ctx); err != nil {
			c.all.skip("whether DynamoGraphDeployments are served: "+err.Error(), "")
		} else if served = as != ""; served {
			c.all.ok("DynamoGraphDeployments are served as " + as)
		} else {
			report("DynamoGraphDeployments are served in no version that KV Booth reads; "+
				"the Kubernetes cluster has "+strings.Join(versions, ", "),
				"install a Dynamo operator that serves "+graphs.GroupVersion().String())
		}
	}
	for _, other := range []struct{ group, name, without string }{
		{
			"gateway.networking.k8s.io", "Gateway API",
			"needed only for routes from outside; a Service of type LoadBalancer or a port-forward works without it",
		},
		{
			"monitoring.coreos.com", "prometheus-operator",
			"needed only for PodMonitors and ServiceMonitors; a Prometheus with scrape_configs works without it",
		},
		{
			"grove.io", "Grove",
			"Dynamo then uses Deployments, which is enough if each worker fits on one node",
		},
	} {
		switch versions, err := c.versions(ctx, other.group); {
		case err != nil:
			c.all.skip(other.name+": "+err.Error(), "")
		case len(versions) == 0:
			c.all.ok(fmt.Sprintf("%s (%s) is not installed: %s", other.name, other.group, other.without))
		default:
			c.all.ok(fmt.Sprintf("%s (%s) is installed, version %s",
				other.name, other.group, strings.Join(versions, ", ")))
		}
	}
	return served
}

// versions returns the served versions of an API group; none if the cluster does not have the group.
func (c *cluster) versions(ctx context.Context, group string) (all []string, err error) {
	a, err := c.raw(ctx, "/apis/"+group)
	if err != nil || a.code == http.StatusNotFound {
		return nil, err
	}
	var list struct {
		Versions []struct {
			Version string `json:"version"`
		} `json:"versions"`
	}
	err = a.read(&list)
	for _, v := range list.Versions {
		all = append(all, v.Version)
	}
	return all, err
}

// serves returns the latest supported version in which graphs are served, or "".
func (c *cluster) serves(ctx context.Context) (string, error) {
	for _, version := range kubernetes.Versions {
		a, err := c.raw(ctx, "/apis/"+version.GroupVersion().String())
		if err != nil {
			return "", err
		}
		var resources metav1.APIResourceList
		if a.code == http.StatusNotFound {
			continue
		}
		if err := a.read(&resources); err != nil {
			return "", err
		}
		isGraph := func(r metav1.APIResource) bool { return r.Name == version.Resource }
		if slices.ContainsFunc(resources.APIResources, isGraph) {
			return version.GroupVersion().String(), nil
		}
	}
	return "", nil
}

// graph examines a deployment and everything that it requires.
func (c *cluster) graph(ctx context.Context, g graphName) {
	d := kubernetes.New(ctx, c.client, kubernetes.Options{
		Namespace: g.namespace, Name: g.name, Selector: g.selector, Target: g.target,
		Log: slog.New(slog.DiscardHandler),
		// With another driver, no rollout of workers requires GPUs.
		FrontendAlone: c.setting("mode.kubernetes.restart") == "frontend" ||
			c.status != nil && c.setting("mode.driver") != driver,
	})
	needs, found, err := d.Look(ctx)
	if apierrors.IsForbidden(err) {
		c.all.skip(fmt.Sprintf("the graph %s: our credentials may not read it", g),
			"use other credentials with --kubeconfig, or grant get on "+graphs.Resource)
		return
	}
	*c.all = append(*c.all, found...)
	if err != nil {
		return // Look has added a finding
	}
	if c.setting("mode.driver") == driver {
		c.rights(ctx, d)
	}
	held := c.pods(ctx, needs)
	if c.GPUs == nil && needs.GPUs > 0 && needs.Unknown == "" {
		c.gpus(ctx, d, max(0, needs.GPUs-held), needs)
	}
	for _, name := range needs.Claims {
		c.claim(ctx, g.namespace, name)
	}
	c.download(ctx, g.namespace, len(needs.Claims) > 0)
	for _, name := range needs.Secrets {
		c.secret(ctx, g.namespace, name)
	}
}

// rights checks the rights of our credentials, which may differ from the load generator's.
func (c *cluster) rights(ctx context.Context, d *kubernetes.Driver) {
	for _, f := range d.Rights(ctx) {
		if f.Severity != kubernetes.Good {
			c.all.skip("whether the load generator may switch the mode: with our credentials, "+f.Found,
				"run loadgen check --cluster in the load generator's pod, or "+f.Do)
			return
		}
		c.all.ok("our credentials have " + f.Found)
	}
}

// pods checks a graph's pods, and returns the number of their GPUs.
func (c *cluster) pods(ctx context.Context, n kubernetes.Needs) int64 {
	all, err := list[corev1.Pod](ctx, c.client.Resource(pods).Namespace(n.Namespace), kubernetes.PodsOf(n.Name))
	if err != nil {
		c.all.skip("the pods of "+n.Name+": "+err.Error(), "")
		return 0
	}
	ready := 0
	for i := range all {
		p := &all[i]
		if kubernetes.PodReady(*p) {
			ready++
		}
		c.pod(p, n)
	}
	if text := fmt.Sprintf("%d of %d pods of %s are ready", ready, n.Pods, n.Name); ready >= n.Pods {
		c.all.ok(text)
	} else {
		c.all.problem(text, "see each pod: kubectl -n "+n.Namespace+" get pods -l "+kubernetes.PodsOf(n.Name)+
			", kubectl describe pod, kubectl logs")
	}
	return n.Held(all)
}

// pod adds the problems of a pod.
func (c *cluster) pod(p *corev1.Pod, n kubernetes.Needs) {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			do := "see kubectl -n " + p.Namespace + " describe pod " + p.Name
			if needed := n.Lacks(*p, condition.Message); needed != "" {
				do = "it needs " + needed + " on one node: " +
					"add a node to the GPU pool, free GPUs that are in use, or reduce the replicas"
			} else if strings.Contains(condition.Message, "persistentvolumeclaim") {
				do = "bind the claim, see below"
			}
			c.all.problem(fmt.Sprintf("pod %s is Pending: %s", p.Name, condition.Message), do)
		}
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := s.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			c.all.problem(
				fmt.Sprintf("pod %s does not start: %s", p.Name, strings.TrimSuffix(w.Reason+": "+w.Message, ": ")),
				"see kubectl -n "+p.Namespace+" describe pod "+p.Name+", and its log with --previous")
		}
		if s.RestartCount > 0 {
			c.all.warn(fmt.Sprintf("pod %s has restarted %d times", p.Name, s.RestartCount),
				"see why: kubectl -n "+p.Namespace+" logs --previous "+p.Name)
		}
	}
}

// gpus checks whether enough GPUs are free, of the kind and in the group size that a graph requires. Without a name,
// needs is for no graph.
func (c *cluster) gpus(ctx context.Context, d *kubernetes.Driver, want int64, needs kubernetes.Needs) {
	graph := needs.Name
	if want == 0 && graph != "" {
		c.all.ok(graph + " has all the GPUs it requests")
		return
	}
	text := fmt.Sprintf("%d GPUs are requested", want)
	if graph != "" {
		text = fmt.Sprintf("%s requests %d GPUs that it does not have", graph, want)
	}
	free, err := d.FreeGPUs(ctx, needs.Kind, max(1, needs.Each))
	switch {
	case err != nil:
		c.all.skip(text+"; the number of free GPUs is unknown: "+err.Error(),
			"grant list on nodes and on pods of all namespaces")
	case free < want:
		c.all.problem(fmt.Sprintf("%s, %d are free: %d too few", text, free, want-free),
			"add a node to the GPU pool, free GPUs that are in use, or reduce the replicas")
	default:
		c.all.ok(fmt.Sprintf("%s, %d are free", text, free))
	}
}

func (c *cluster) claim(ctx context.Context, namespace, name string) {
	p, err := get[corev1.PersistentVolumeClaim](ctx, c.client.Resource(claims).Namespace(namespace), name)
	switch {
	case apierrors.IsNotFound(err):
		c.all.problem(fmt.Sprintf("the claim %s/%s, which the pods mount, does not exist", namespace, name),
			"create it: the chart's values model, or a PersistentVolumeClaim of that name")
	case err != nil:
		c.all.skip(fmt.Sprintf("the claim %s/%s: %v", namespace, name, err), "")
	case p.Status.Phase != corev1.ClaimBound:
		c.all.problem(fmt.Sprintf("the claim %s/%s is %s, not Bound", namespace, name, p.Status.Phase),
			"create a matching PersistentVolume (class, size, access mode), or fix the NFS server: "+
				"kubectl describe pvc "+name)
	default:
		c.all.ok(fmt.Sprintf("the claim %s/%s is bound to %s", namespace, name, p.Spec.VolumeName))
	}
}

// download checks the Job that downloads the weights.
func (c *cluster) download(ctx context.Context, namespace string, claimed bool) {
	all, err := list[batchv1.Job](ctx, c.client.Resource(jobs).Namespace(namespace), download)
	switch {
	case err != nil:
		c.all.skip("the download of the weights: "+err.Error(), "")
	case len(all) == 0 && claimed:
		c.all.skip("the weights on the volume: there is no download Job ("+download+")",
			"check the volume, or let the chart download them")
	}
	for _, j := range all {
		has := func(kind batchv1.JobConditionType) bool {
			isTrue := func(c batchv1.JobCondition) bool {
				return c.Type == kind && c.Status == corev1.ConditionTrue
			}
			return slices.ContainsFunc(j.Status.Conditions, isTrue)
		}
		logs := "kubectl -n " + namespace + " logs job/" + j.Name
		switch {
		case has(batchv1.JobComplete):
			c.all.ok("the weights are downloaded: Job " + j.Name + " is complete")
		case has(batchv1.JobFailed):
			c.all.problem("the weights are missing: Job "+j.Name+" has failed",
				"see "+logs+"; delete it and apply it again; it resumes the download")
		default:
			c.all.problem(fmt.Sprintf("the weights are still downloading: Job %s has %d of %d pods done, %d running",
				j.Name, j.Status.Succeeded, jobPods(&j), j.Status.Active), "wait; progress: "+logs)
		}
	}
}

func jobPods(j *batchv1.Job) int32 {
	if j.Spec.Completions == nil {
		return 1
	}
	return *j.Spec.Completions
}

func (c *cluster) secret(ctx context.Context, namespace, name string) {
	s, err := get[corev1.Secret](ctx, c.client.Resource(secrets).Namespace(namespace), name)
	create := "kubectl -n " + namespace + " create secret generic " + name + " --from-literal=KEY=VALUE"
	switch {
	case apierrors.IsNotFound(err):
		c.all.problem(fmt.Sprintf("the Secret %s/%s does not exist", namespace, name), "create it: "+create)
		return
	case err != nil:
		c.all.skip(fmt.Sprintf("the Secret %s/%s: %v", namespace, name, err),
			"grant get on it, or check it yourself")
		return
	case len(s.Data) == 0:
		c.all.problem(fmt.Sprintf("the Secret %s/%s is empty", namespace, name),
			"delete it and create it again: "+create)
		return
	}
	for key, value := range s.Data {
		if len(value) == 0 {
			c.all.problem(fmt.Sprintf("the Secret %s/%s has an empty value under %s", namespace, name, key),
				"set it: kubectl -n "+namespace+" edit secret "+name)
			return
		}
	}
	c.all.ok(fmt.Sprintf("the Secret %s/%s exists", namespace, name))
}

// get reads one object.
func get[T any](ctx context.Context, from dynamic.ResourceInterface, name string) (object T, err error) {
	u, err := from.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &object)
	}
	return object, err
}

// list reads all objects that match a label selector.
func list[T any](ctx context.Context, from dynamic.ResourceInterface, selector string) ([]T, error) {
	found, err := from.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return kubernetes.ReadAll[T](found)
}
