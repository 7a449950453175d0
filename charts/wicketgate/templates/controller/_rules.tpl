{{/* What the controller asks of its own namespace: who leads. */}}
{{- define "wicketgate.electionRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, patch]
{{- end }}

{{/* What the controller asks of the namespaces that it watches. */}}
{{- define "wicketgate.controllerRules" -}}
- apiGroups: [gateway.wicketgate.dev{{ if .Values.controller.awsGroup }}, inference.sagemaker.aws.amazon.com{{ end }}]
  resources: [inferencegatewayconfigs]
  verbs: [list, watch]
- apiGroups: [gateway.wicketgate.dev{{ if .Values.controller.awsGroup }}, inference.sagemaker.aws.amazon.com{{ end }}]
  resources: [inferencegatewayconfigs/status]
  verbs: [patch]
# What a gateway is made of.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services, serviceaccounts]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [list, watch, create, patch, delete]
# What the gateways may do, and the controller therefore must be allowed.
- apiGroups: [""]
  resources: [pods, configmaps]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}
