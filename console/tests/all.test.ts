import "./route";
