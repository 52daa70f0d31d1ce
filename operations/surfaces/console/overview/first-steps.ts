/** What a new installation lacks before anything can be sold, in the order in which it is made. */
import { agenda, type Html, link, section } from '#service-kit/pages/index.ts';
import type { OverviewFacts } from './overview-facts.ts';

export interface Step {
  title: string;
  text: string;
  href: string;
  isDone: boolean;
}

export function firstSteps(facts: OverviewFacts): Step[] {
  const { clusters, locations, nodes, pools, plans, images, customerCount, tokens } = facts;
  const clusterId = clusters[0]?.id;
  const inCluster = (what: string) =>
    clusterId === undefined ? '/console/clusters/' : `/console/clusters/${clusterId}/${what}/new`;
  return [
    {
      title: 'Create a location',
      text: 'A data center that customers choose.',
      href: '/console/catalog/locations/new',
      isDone: locations.length > 0,
    },
    {
      title: 'Create a cluster',
      text: 'The hypervisors of a location and their driver.',
      href: '/console/clusters/new',
      isDone: clusters.length > 0,
    },
    {
      title: 'Add a node',
      text: 'A hypervisor host, and how much of its capacity may be allocated.',
      href: inCluster('nodes'),
      isDone: nodes.length > 0,
    },
    {
      title: 'Add addresses',
      text: 'The range from which new servers get addresses.',
      href: inCluster('pools'),
      isDone: pools.length > 0,
    },
    {
      title: 'Create a plan',
      text: 'A server size and its price.',
      href: '/console/catalog/plans/new',
      isDone: plans.some((plan) => plan.isOffered),
    },
    {
      title: 'Create an image',
      text: 'The operating system of a new server.',
      href: '/console/catalog/images/new',
      isDone: images.some((image) => image.isOffered),
    },
    {
      title: 'Create a customer',
      text: 'An organization with an owner who signs in.',
      href: '/console/customers/new',
      isDone: customerCount > 0,
    },
    {
      title: 'Connect the monitor',
      text: 'Create a project and a token. Customers then see the traffic of their own servers.',
      href: '/console/projects/',
      isDone: tokens.some((token) => token.isActive),
    },
  ];
}

export function stepsSection(steps: readonly Step[], canChange: boolean): Html {
  const next = steps.find((step) => !step.isDone);
  return section(
    { title: 'First steps', description: 'Steps that are not done yet, in order.' },
    agenda(
      'First steps',
      steps.map((step) => ({
        tone: step.isDone ? ('good' as const) : step === next ? ('info' as const) : ('neutral' as const),
        state: step.isDone ? 'done' : step === next ? 'next' : 'to do',
        title: canChange && !step.isDone ? link(step.href, step.title) : step.title,
        text: step.text,
      })),
    ),
  );
}
