declare const data: Readonly<Record<string, string>>;
export default data;
