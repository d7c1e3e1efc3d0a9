export { DeploymentTable } from './DeploymentTable';
