// Package manager is "ambit manager": it runs the controllers.
package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/report"
)

// startTimeout is how long a manager that starts waits for the API server.
const startTimeout = 30 * time.Second

// Options are the flags and arguments of "ambit manager".
type Options struct {
	// Settings are what the flags say, and what run finds out besides.
	controllers.Settings

	version        string
	kubeconfig     string
	leaderElect    bool
	metricsAddress string
	metricsSecure  bool
	metricsCertDir string
	probeAddress   string
	// asksForScope says that whoever starts Ambit asked for the default scope.
	asksForScope bool
}

// Command returns "ambit manager" for a program of the given version.
func Command(version string) *cobra.Command {
	o := &Options{version: version, Settings: controllers.Settings{Namespace: os.Getenv("OPERATOR_NAMESPACE")}}
	c := &cobra.Command{
		Use:   "manager",
		Short: "Run the controllers",
		Long: `Run the controllers: watch NamespaceScopes, and the other kinds that Ambit serves, and keep the
cluster in line with them.

The environment variable OPERATOR_NAMESPACE names Ambit's own namespace. Labels never
select that namespace for a scope. With --leader-elect, the lease is there.`,
		Example: `  # Against the cluster of a kubeconfig, as that kubeconfig's user
  OPERATOR_NAMESPACE=ambit-system ambit manager --kubeconfig ~/.kube/config

  # In a cluster, with two replicas
  ambit manager --leader-elect`,
		Args: command.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			o.asksForScope = o.DefaultScope && c.Flags().Changed("default-scope")
			o.DefaultScope = o.asksForScope || o.DefaultScope && len(o.Namespaces) > 0

			if err := o.validate(); err != nil {
				return command.Usage(err)
			}

			logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(c.ErrOrStderr())))

			return ended(c.Context(), logger, o.run(c.Context(), logger))
		},
	}

	f := c.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "",
		"kubeconfig of the cluster; without it KUBECONFIG, the cluster that Ambit runs in, or ~/.kube/config")
	f.BoolVar(&o.leaderElect, "leader-elect", false,
		"let one replica work at a time, agreed on by a Lease in OPERATOR_NAMESPACE")
	o.metricsFlags(f)
	f.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081",
		"address of /healthz and /readyz (host:port); 0 serves none")
	f.StringVar(&o.DefaultServiceAccount, "default-service-account", "",
		"service account, in a scope's own namespace, as which Ambit writes for a scope that names none; by default Ambit itself")
	f.BoolVar(&o.NeedDelegate, "require-service-account", false,
		"write nothing as Ambit itself: do not serve scopes without a service account (profile delegated)")
	f.DurationVar(&o.RestartInterval, "restart-interval", plan.DefaultRestartInterval,
		"minimal time between two restarts of one workload; while changes continue, each restart doubles it, up to 5m; changes in "+
			"between lead to one restart at the end")
	f.DurationVar(&o.FollowGrace, "follow-grace", plan.DefaultFollowGrace,
		"how long permissions stay in a namespace that left, for operators that follow the list and have not released it yet")
	f.DurationVar(&o.FinishGrace, "finish-grace", plan.DefaultFinishGrace,
		"how long a namespace that left keeps its permissions and its place in the list while custom resources there wait for a "+
			"finalizer of an operator; 0 disables this")
	f.StringSliceVar(&o.Namespaces, "namespaces", nil,
		"serve only the scopes in these namespaces (a,b), and read nothing cluster-wide: watch members one by one, as "+
			"their owners authorize Ambit (profile namespaced); by default serve all scopes")
	f.BoolVar(&o.DefaultScope, "default-scope", true,
		"create the scope "+controllers.DefaultScopeName+" in OPERATOR_NAMESPACE at start if there is none; without --namespaces only "+
			"if this flag is given, and with --namespaces only if OPERATOR_NAMESPACE is one of them")
	f.StringVar((*string)(&o.OperatorGroups), "operator-groups", string(read.ServeAuto),
		"serve OLM's OperatorGroups, and what they install: auto (unless OLM's own controllers run), enabled or disabled; "+
			"with --namespaces, Ambit cannot know whether they run, and auto means disabled")
	f.StringSliceVar(&o.OLMNamespaces, "olm-namespaces", read.OLMNamespaces(),
		"namespaces of OLM's own controllers (a,b): with --operator-groups=auto, their Deployments there mean that OLM runs; Ambit "+
			"ignores such Deployments elsewhere")
	f.IntVar(&o.Writes, "concurrent-writes", 64,
		"how many writes of one namespace's scopes are under way at once, 1 to 1000")

	return c
}

func (o *Options) validate() error {
	if err := o.validateNames(); err != nil {
		return err
	}

	if err := o.validateDefaultScope(); err != nil {
		return err
	}

	switch {
	case o.metricsCertDir != "" && !o.metricsSecure:
		return errors.New("--metrics-cert-dir cannot be given with --metrics-secure=false: there is no TLS then")
	case o.RestartInterval < 0:
		return fmt.Errorf("--restart-interval is %s; give 0 or more", o.RestartInterval)
	case o.FollowGrace < 0:
		return fmt.Errorf("--follow-grace is %s; give 0 or more", o.FollowGrace)
	case o.FinishGrace < 0:
		return fmt.Errorf("--finish-grace is %s; give 0 or more", o.FinishGrace)
	case o.Writes < 1 || o.Writes > 1000:
		return fmt.Errorf("--concurrent-writes is %d; give 1 to 1000", o.Writes)
	case o.leaderElect && o.Namespace == "":
		return errors.New("--leader-elect needs a namespace for its Lease; set OPERATOR_NAMESPACE")
	default:
		return o.validateOperatorGroups()
	}
}

// validateDefaultScope says why the scope cannot be made that was asked for.
func (o *Options) validateDefaultScope() error {
	switch {
	case !o.asksForScope:
		return nil
	case o.Namespace == "":
		return errors.New("--default-scope needs a namespace to make it in; set OPERATOR_NAMESPACE")
	case len(o.Namespaces) > 0 && !slices.Contains(o.Namespaces, o.Namespace):
		return fmt.Errorf("--default-scope makes a scope in namespace %s, which --namespaces leaves out; add it there, or give "+
			"--default-scope=false", o.Namespace)
	default:
		return nil
	}
}

// validateNames says which name can be that of nothing. A space after a comma is part of a name.
func (o *Options) validateNames() error {
	for _, given := range []struct {
		what  string
		names []string
	}{
		{"--namespaces", o.Namespaces}, {"--olm-namespaces", o.OLMNamespaces}, {"OPERATOR_NAMESPACE", present(o.Namespace)},
	} {
		for _, name := range given.names {
			if problems := validation.ValidateNamespaceName(name, false); len(problems) > 0 {
				return fmt.Errorf("%s has %q, which is no name of a namespace: %s", given.what, name, problems[0])
			}
		}
	}

	if o.DefaultServiceAccount == "" {
		return nil
	}

	return command.ValidName("--default-service-account", o.DefaultServiceAccount)
}

// present is a name in a list, if there is one.
func present(name string) []string {
	if name == "" {
		return nil
	}

	return []string{name}
}

func (o *Options) validateOperatorGroups() error {
	switch {
	case !slices.Contains([]read.Serving{read.ServeAuto, read.ServeAlways, read.ServeNever}, o.OperatorGroups):
		return fmt.Errorf("--operator-groups is %q; give auto, enabled or disabled", o.OperatorGroups)
	case len(o.OLMNamespaces) == 0:
		return errors.New("--olm-namespaces is empty; give names separated by commas, or --operator-groups=enabled where OLM runs " +
			"nowhere")
	default:
		return nil
	}
}

func (o *Options) run(ctx context.Context, logger logr.Logger) error {
	log.SetLogger(logger)
	klog.SetLogger(logger)

	boundMemory()
	command.NoticeLostConnections()

	if err := o.checkMetricsCert(); err != nil {
		return err
	}

	config, err := o.config()
	if err != nil {
		return err
	}

	scheme, err := controllers.Scheme()
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}

	o.Remembered = controllers.NewRemembered()

	if o.Answers, err = controllers.NewAnswers(config); err != nil {
		return fmt.Errorf("starting: %w", err)
	}

	if o.User, err = whoAmI(ctx, config); err != nil {
		return err
	}

	if o.Names, err = controllers.LoadNames(ctx, config, o.Namespace); err != nil {
		return fmt.Errorf("starting: %w", err)
	}

	options := manager.Options{
		Scheme: scheme, Logger: logger, Cache: controllers.Cache(o.Settings),
		// Ambit serves these itself, below.
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	}

	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)

	if o.leaderElect {
		if err := o.elect(config, &options, o.Names, end); err != nil {
			return fmt.Errorf("starting: %w", err)
		}
	}

	made, err := ctrl.NewManager(config, options)
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}

	m := &checked{made, map[string]healthz.Checker{}}
	if err := controllers.Add(m, o.Settings); err != nil {
		return fmt.Errorf("starting: %w", err)
	}

	if err := errors.Join(o.serveMetrics(ctx, m), o.serveProbes(ctx, m)); err != nil {
		return err
	}

	return work(ctx, m)
}

// work runs a manager until it ends, or the context does, and returns why if nobody asked for that.
func work(ctx context.Context, m manager.Manager) error {
	if err := m.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}

	if why := context.Cause(ctx); why != nil && !errors.Is(why, context.Canceled) {
		return fmt.Errorf("running: %w", why)
	}

	return nil
}

// elect lets one replica work at a time, and none write through a config that may have lost its lease. It ends one whose turn
// comes after the key of names was replaced, and any that knows a later state of the cluster than there is.
func (o *Options) elect(config *rest.Config, to *manager.Options, names *projected.Names, end context.CancelCauseFunc) error {
	unfenced := rest.CopyConfig(config)

	on, err := newLock(unfenced, o.Namespace, func(ctx context.Context) error {
		err := controllers.CheckNames(ctx, unfenced, o.Namespace, names)
		if err != nil {
			end(err)
		}

		return err
	}, func() { end(errWentBack) })
	if err != nil {
		return err
	}

	on.Fence(config)

	to.LeaderElection, to.LeaderElectionReleaseOnCancel, to.LeaderElectionResourceLockInterface = true, true, on
	to.RenewDeadline, to.LeaseDuration = new(renewWithin), new(lease)

	return nil
}

// ended returns the error with which a manager ends. Once it was asked to end, a start that it could not finish is no failure; a
// part of it that did not stop in time is one.
func ended(asked context.Context, logger logr.Logger, err error) error {
	if err == nil || asked.Err() == nil || errors.Is(err, context.DeadlineExceeded) {
		return err
	}

	logger.Info("Ended while it began", "because", err.Error())

	return nil
}

// whoAmI asks the API server who it takes Ambit for. It asks again if the API server cannot be reached for a moment, or refuses:
// an API server that is starting does not know the roles yet.
func whoAmI(ctx context.Context, config *rest.Config) (string, error) {
	// The one kind that is asked for needs no discovery.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), meta.RESTScopeRoot)

	c, err := client.New(config, client.Options{Mapper: mapper})
	if err != nil {
		return "", fmt.Errorf("starting: %w", err)
	}

	var (
		name string
		last error
	)

	err = wait.PollUntilContextTimeout(ctx, time.Second, startTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		if name, err = command.UserName(ctx, c); err == nil {
			return true, nil
		} else if last == nil {
			log.Log.Info("Waiting for the API server", "because", err.Error())
			last = err
		}

		return false, nil
	})
	if err != nil {
		return "", fmt.Errorf("asking the API server who Ambit is: %w", cmp.Or(last, err))
	}

	return name, nil
}

// config returns how to reach the cluster. The client does not limit its own rate: the API server's priority and fairness
// does that, and knows better.
func (o *Options) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig

	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster (give --kubeconfig, or set KUBECONFIG): %w", err)
	}

	config.QPS = -1
	// The API server warns about the finalizer's name at every write of it; the name is IBM's.
	config.WarningHandler = rest.NoWarnings{}
	config.UserAgent = "ambit/" + o.version
	config.Wrap(read.LimitWatches())
	config.Wrap(report.LimitEvents())
	config.Wrap(apply.OnlyOwnLimits)

	return config, nil
}
