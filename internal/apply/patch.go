package apply

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/printable"
)

// patch is what is written into an object, as JSON that the API server may read as YAML.
type patch struct {
	as      types.PatchType
	content any
}

func apply(content any) client.Patch { return patch{types.ApplyPatchType, content} }
func merge(content any) client.Patch { return patch{types.MergePatchType, content} }

// Type says what the API server does with it.
func (p patch) Type() types.PatchType { return p.as }

// Data is the same for every object.
func (p patch) Data(client.Object) ([]byte, error) {
	return printable.Body(p.content)
}
