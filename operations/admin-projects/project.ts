import { CodedError } from '#common/errors/index.ts';

export interface AdminProject {
  id: number;
  name: string;
  permissions: string[];
  /** null: every cluster. */
  clusterIds: number[] | null;
  createdAt: Date;
}

export interface AdminToken {
  id: string;
  projectId: number;
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
  isActive: boolean;
}

/** The permissions of a list, each once, in the order of the known ones; throws `admin_projects.invalid` for another one. */
export function parsePermissions(names: readonly string[], known: readonly string[]): string[] {
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw invalid(`There is no permission "${unknown}". There are: ${known.join(', ')}.`);
  }
  return known.filter((name) => names.includes(name));
}

export function invalid(message: string): CodedError {
  return new CodedError('admin_projects.invalid', message);
}
