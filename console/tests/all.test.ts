import "./browser";
import "./format";
import "./route";
import "./rows";
import "./session";
import "./trail";
