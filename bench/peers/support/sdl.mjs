/** The same part of the graph as the server has it, for what is built from SDL. */
export const SDL = `
  type Query {
    deployments(first: Int!): DeploymentConnection!
    deployment(id: ID!): Deployment
    runtimes(first: Int!): RuntimeConnection!
  }
  type DeploymentConnection { nodes: [Deployment!]! }
  type RuntimeConnection { nodes: [Runtime!]! }
  type Deployment {
    id: ID!
    name: String!
    namespace: String!
    app: String!
    version: Int!
    createdAt: String!
    labels: Labels!
    status: DeploymentStatus!
    runtime: Runtime!
    currentRelease: Release
  }
  scalar Labels
  type DeploymentStatus { phase: String! summary: String! conditions: [Condition!]! }
  type Condition { type: String! status: String! }
  type Runtime { id: ID! name: String! type: String! deployments(first: Int!): DeploymentConnection! }
  type Release { id: ID! label: String! resources: [ReleaseResource!]! }
  type ReleaseResource { name: String! }

  type Mutation { patchDeploymentStatus(input: PatchDeploymentStatusInput!): PatchDeploymentStatusResult! }
  input PatchDeploymentStatusInput {
    id: ID!
    expectedVersion: Int!
    observedGeneration: Int
    phase: String!
    conditions: [ConditionInput!]!
    error: DeploymentErrorInput
  }
  input ConditionInput { type: String! status: String! reason: String! message: String }
  input DeploymentErrorInput { code: String! message: String! }
  union PatchDeploymentStatusResult = PatchDeploymentStatusPayload | Failure
  type PatchDeploymentStatusPayload { deployment: Deployment! }
  type Failure { code: String! message: String! }

  type Subscription { deploymentPhaseChanged: DeploymentPhaseChange! }
  type DeploymentPhaseChange {
    cursor: String!
    at: String!
    from: String
    to: String!
    version: Int!
    reason: String
    message: String
    actor: String!
    deployment: Deployment!
  }
`;
