package guard_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// templateOperation is a way to write a ScopeTemplate or a ScopeInstance.
type templateOperation struct {
	reason string
	do     func(h *hall, who *somebody) error
	// escalates says that only who may escalate clusterroles may do it; widens that nobody may, without the annotation.
	escalates, widens bool
}

func templateOperations() map[string]templateOperation {
	all := map[string]templateOperation{
		"CreateTemplate": {
			reason: "its ClusterRoles would be Ambit's work", escalates: true,
			do: func(h *hall, who *somebody) error { return h.make(who, templates, map[string]any{}, nil) },
		},
		"ApplyNewTemplate": {
			reason: "server-side apply of what is not there creates it", escalates: true,
			do: func(h *hall, who *somebody) error {
				return h.apply(who, templates, tool, fresh, map[string]any{"clusterRoles": []any{}})
			},
		},
		"PatchRules": {
			reason: "the rules are what everybody gets", escalates: true,
			do: func(h *hall, who *somebody) error {
				return h.json(who, templates, template, `[{"op":"add","path":"/spec/clusterRoles/0/rules/0/verbs/-","value":"*"}]`)
			},
		},
		"PatchSubjects": {
			reason: "and the subjects are who gets them", escalates: true,
			do: func(h *hall, who *somebody) error {
				return h.merge(who, templates, template, `{"spec":{"bindingTemplate":{"subjects":[{"kind":"User","name":"eve"}]}}}`)
			},
		},
		"PatchTemplateSpecAway": {
			reason: "that takes rights away which somebody gave who may", escalates: true,
			do: func(h *hall, who *somebody) error { return h.merge(who, templates, template, `{"spec":null}`) },
		},
		"LabelTemplate": {
			reason: "metadata does not change what a template does",
			do: func(h *hall, who *somebody) error {
				return h.merge(who, templates, template, `{"metadata":{"labels":{"team":"a"}}}`)
			},
		},
		"HoldTemplate": {
			reason: "nor do finalizers",
			do: func(h *hall, who *somebody) error {
				return h.merge(who, templates, template, `{"metadata":{"finalizers":["guard.test/hold"]}}`)
			},
		},
		"UpdateNothingOfTemplate": {
			reason: "saying again what is there changes nothing",
			do: func(h *hall, who *somebody) error {
				return h.update(who, templates, template, func(map[string]any) {})
			},
		},
		"DeleteTemplate": {
			reason: "the end of a template only takes rights away, and RBAC says who may",
			do: func(h *hall, who *somebody) error {
				return h.of(who, templates).Delete(h.Context(), h.name(template), metav1.DeleteOptions{DryRun: dryRun})
			},
		},
		"DeleteInstance": {
			reason: "likewise",
			do: func(h *hall, who *somebody) error {
				return h.of(who, instances).Delete(h.Context(), h.name(wide), metav1.DeleteOptions{DryRun: dryRun})
			},
		},
		"CreateInNamespaces": {
			reason: "the bindings would be Ambit's work", escalates: true,
			do: func(h *hall, who *somebody) error { return h.make(who, instances, specOf("team-a"), nil) },
		},
		"CreateInTheWholeCluster": {
			reason: "who says so from the beginning means it", escalates: true,
			do: func(h *hall, who *somebody) error { return h.make(who, instances, specOf(), nil) },
		},
		"CreateAllowed": {
			reason: "the annotation is no authority by itself", escalates: true,
			do: func(h *hall, who *somebody) error {
				return h.make(who, instances, specOf(), map[string]string{"ambit.dev/allow-cluster-wide": "true"})
			},
		},
		"ApplyAllAway": {
			reason: "a field that its only field manager leaves out is removed; no word of the request says so",
			do:     func(h *hall, who *somebody) error { return h.apply(who, instances, tool, narrow, specOf()) },

			escalates: true, widens: true,
		},
		"UpdateAllAway": {
			reason: "the same by a whole object", escalates: true, widens: true,
			do: func(h *hall, who *somebody) error {
				return h.update(who, instances, narrow, func(spec map[string]any) { delete(spec, "namespaces") })
			},
		},
	}

	for name, p := range instancePatches() {
		all[name] = templateOperation{
			reason: p.reason, escalates: !p.free, widens: p.widens,
			do: func(h *hall, who *somebody) error { return h.merge(who, instances, p.of, p.body) },
		}
	}

	return all
}

// instancePatch is a merge patch of one of the instances that are there. Who may not escalate clusterroles may do it if it is
// free.
type instancePatch struct {
	reason, of, body string
	free, widens     bool
}

func instancePatches() map[string]instancePatch {
	return map[string]instancePatch{
		"OneMore":         {reason: "one namespace more", of: narrow, body: `{"spec":{"namespaces":["guard-missing","b"]}}`},
		"AnotherTemplate": {reason: "other rights", of: narrow, body: `{"spec":{"scopeTemplateName":"guard-other"}}`},
		"Emptied": {
			reason: "an emptied list is no wish for everything", of: narrow, body: `{"spec":{"namespaces":[]}}`, widens: true,
		},
		"Nulled": {reason: "nor is null", of: narrow, body: `{"spec":{"namespaces":null}}`, widens: true},
		"SelectorAway": {
			reason: "nor a selector that is gone", of: chosen, body: `{"spec":{"namespaceSelector":null}}`, widens: true,
		},
		"SelectorEmptied": {
			reason: "an empty selector selects nothing", of: narrow, body: `{"spec":{"namespaces":null,"namespaceSelector":{}}}`,
		},
		"NamesForSelector": {
			reason: "one for the other", of: chosen, body: `{"spec":{"namespaces":["b"],"namespaceSelector":null}}`,
		},
		"EmptiedAndAllowed": {
			reason: "in so many words", of: narrow, body: `{"metadata":{` + allowClusterWide + `},"spec":{"namespaces":[]}}`,
		},
		"EmptiedWhereAllowed": {reason: "the words were said before", of: leave, body: `{"spec":{"namespaces":[]}}`},
		"EmptiedAndForbidden": {
			reason: "nothing but true is the word", of: leave, widens: true,
			body: `{"metadata":{"annotations":{"ambit.dev/allow-cluster-wide":"yes"}},"spec":{"namespaces":[]}}`,
		},
		"Allow": {
			reason: "the annotation is as good as the change that it allows", of: narrow, body: `{"metadata":{` + allowClusterWide + `}}`,
		},
		"Disallow": {
			reason: "whoever may set it may take it off", of: leave,
			body: `{"metadata":{"annotations":{"ambit.dev/allow-cluster-wide":null}}}`,
		},
		"FromEverywhere":  {reason: "the other way needs no leave", of: wide, body: `{"spec":{"namespaces":["b"]}}`},
		"StillEverywhere": {reason: "it does already", of: wide, body: `{"spec":{"scopeTemplateName":"guard-other"}}`},
		"LabelEverywhere": {
			reason: "metadata does not change what it does", of: wide, free: true,
			body: `{"metadata":{"labels":{"team":"a"}}}`,
		},
		"AnnotateSomething": {
			reason: "nor do other annotations", of: narrow, free: true,
			body: `{"metadata":{"annotations":{"note":"hello"}}}`,
		},
		"TheSameOnceMore": {
			reason: "saying again what is there", of: narrow, free: true,
			body: `{"spec":{"namespaces":["guard-missing"]}}`,
		},
		"NullWhereThereIsNo": {reason: "a null takes nothing away", of: wide, body: `{"spec":{"namespaceSelector":null}}`, free: true},
	}
}

// update writes the whole object. A manager may write its status at the same time, hence the retries.
func (h *hall) update(who *somebody, resource schema.GroupVersionResource, name string, edit func(spec map[string]any)) error {
	h.Helper()

	return retry.RetryOnConflict(embedded.Conflicts, func() error {
		obj, err := h.of(who, resource).Get(h.Context(), h.name(name), metav1.GetOptions{})
		if err != nil {
			return err
		}

		spec, _, err := unstructured.NestedMap(obj.Object, "spec")
		if err != nil {
			return err
		}

		edit(spec)
		obj.Object["spec"] = spec

		_, err = h.of(who, resource).Update(h.Context(), obj, metav1.UpdateOptions{DryRun: dryRun})

		return err
	})
}
